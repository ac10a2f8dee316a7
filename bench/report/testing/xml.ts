// Reads the XML that the chart is made of, and no more: what it does not know it refuses.

export interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly (XmlElement | string)[];
}

const NAME = /[A-Za-z_][\w.-]*/y;
const SPACE = /\s+/y;
const TEXT = /[^<]+/y;
const QUOTED = /"([^"<]*)"/y;
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

export function parseXml(source: string): XmlElement {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML forbids.
  const forbidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/.exec(source);
  if (forbidden !== null || !source.isWellFormed()) throw new SyntaxError('a character that XML cannot hold');
  let at = 0;

  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(source);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  const fail = (wanted: string): never => {
    throw new SyntaxError(`${wanted} expected at ${at}: ${source.slice(at, at + 30)}`);
  };
  const expect = (literal: string): void => {
    if (!source.startsWith(literal, at)) fail(literal);
    at += literal.length;
  };
  const name = (): string => take(NAME)?.[0] ?? fail('a name');

  const element = (): XmlElement => {
    expect('<');
    const opened = name();
    const attributes: Record<string, string> = {};
    while (take(SPACE) !== null && !/[/>]/.test(source[at] ?? '')) {
      const key = name();
      expect('=');
      if (Object.hasOwn(attributes, key)) fail(`one ${key} only`);
      attributes[key] = decoded(take(QUOTED)?.[1] ?? fail('a quoted value'));
    }
    if (source.startsWith('/>', at)) {
      at += 2;
      return { name: opened, attributes, children: [] };
    }
    expect('>');
    const children: (XmlElement | string)[] = [];
    while (!source.startsWith('</', at)) {
      const text = take(TEXT);
      children.push(text === null ? element() : decoded(text[0]));
    }
    expect(`</${opened}>`);
    return { name: opened, attributes, children };
  };

  const root = element();
  take(SPACE);
  if (at !== source.length) fail('the end');
  return root;
}

export function textOf(node: XmlElement | string): string {
  return typeof node === 'string' ? node : node.children.map(textOf).join('');
}

/** All elements of the name, in the order of the document. */
export function elementsOf(node: XmlElement, name: string): XmlElement[] {
  const below = node.children.flatMap((child) => (typeof child === 'string' ? [] : elementsOf(child, name)));
  return node.name === name ? [node, ...below] : below;
}

function decoded(text: string): string {
  return text.replaceAll(/&([^;&]*;?)/g, (whole, reference: string) => {
    const numbered = /^#(\d+);$/.exec(reference);
    const character =
      numbered === null ? entities[reference.slice(0, -1)] : String.fromCodePoint(Number(numbered[1]));
    if (!reference.endsWith(';') || character === undefined)
      throw new SyntaxError(`${whole} is no reference`);
    return character;
  });
}
