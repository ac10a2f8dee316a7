// Renders code for the reference page: a figure with a caption and highlighted syntax.

import { escaped, Html, html } from './html.ts';

type Forms = readonly (readonly [className: string, form: RegExp])[];

const shell: Forms = [
  ['key', /"(?:[^"\\]|\\.)*"(?=\s*:)/],
  ['word', /^(?:curl|export)\b/m],
  ['number', /(?<=\s)-[A-Za-z]\b|(?<=": )-?[\d.]+/],
  ['word', /(?<=": )(?:true|false|null)\b/],
  ['text', /"(?:[^"\\]|\\.)*"|'[^'\n]*'/],
];

/** The patterns that are highlighted in each language. If several match at a position, the first one is used. */
const formsOf: Readonly<Record<string, Forms>> = {
  json: [
    ['key', /"(?:[^"\\]|\\.)*"(?=\s*:)/],
    ['text', /"(?:[^"\\]|\\.)*"/],
    ['number', /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/],
    ['word', /\b(?:true|false|null)\b/],
  ],
  sh: shell,
  Shell: shell,
  TypeScript: [
    ['text', /'(?:[^'\\]|\\.)*'/],
    ['word', /\b(?:import|from|const|await|new|for|of|process)\b/],
    ['key', /\b\w+(?=:)/],
    ['number', /\b\d+(?:\.\d+)?\b/],
    ['word', /\b(?:true|false|null)\b/],
  ],
};

/** Returns a figure with the code. If reference.js puts figures into tabs, their captions become the tabs' titles. */
export function codeFigure(language: string, caption: string, source: string): Html {
  const shown = coloured(formsOf[language]!, source);
  return html`<figure class="code" data-label="${caption}"><figcaption>${caption}</figcaption><pre tabindex="0" aria-label="${caption}"><code>${shown}</code></pre></figure>`;
}

export function jsonFigure(caption: string, value: unknown): Html {
  return codeFigure('json', caption, JSON.stringify(value, null, 2));
}

function coloured(named: Forms, source: string): Html {
  const any = new RegExp(named.map(([, { source: form }]) => `(${form})`).join('|'), 'gm');
  let text = '';
  let from = 0;
  for (const found of source.matchAll(any)) {
    const at = found.slice(1).findIndex((part) => part !== undefined);
    text += `${escaped(source.slice(from, found.index))}<span class="${named[at]![0]}">${escaped(found[0])}</span>`;
    from = found.index + found[0].length;
  }
  return new Html(text + escaped(source.slice(from)));
}
