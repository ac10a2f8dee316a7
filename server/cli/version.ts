import packageFacts from '../package.json' with { type: 'json' };

export const version: string = packageFacts.version;
