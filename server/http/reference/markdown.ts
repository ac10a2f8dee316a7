// Converts Markdown to HTML. It supports only what the API description uses: headings, paragraphs, lists, tables,
// fenced code, inline code, links and bold text.

import { codeFigure } from './code.ts';
import { type Html, html, joined } from './html.ts';

export interface Section {
  readonly id: string;
  readonly title: string;
  readonly text: Html;
  /** The fenced code of the section, which is shown next to its text. */
  readonly code: readonly Html[];
}

/** Returns the text before the first `##` heading, and one section for each such heading. */
export function sectionsOf(markdown: string): {
  readonly opening: Html;
  readonly sections: readonly Section[];
} {
  const [opening = '', ...rest] = markdown.split(/^## /m);
  const sections = rest.map((text): Section => {
    const end = text.indexOf('\n');
    const title = text.slice(0, end);
    const blocks = blocksOf(text.slice(end));
    return {
      id: slugOf(title),
      title,
      text: lines(blocks.filter(({ isCode }) => !isCode)),
      code: blocks.filter(({ isCode }) => isCode).map(({ shown }) => shown),
    };
  });
  return { opening: paragraphs(opening), sections };
}

export function paragraphs(markdown: string): Html {
  return lines(blocksOf(markdown));
}

function lines(blocks: readonly Block[]): Html {
  return joined(
    blocks.map(({ shown }) => shown),
    '\n',
  );
}

interface Block {
  readonly shown: Html;
  readonly isCode: boolean;
}

/** Matches a fenced block of code. The text after the language is the caption. */
const fence = /^```(\w+) (.+)\n([\s\S]*?)^```$/m;

function blocksOf(markdown: string): readonly Block[] {
  const found = fence.exec(markdown);
  if (found === null) return plainBlocksOf(markdown);
  const [whole, language, caption, source] = found;
  return [
    ...plainBlocksOf(markdown.slice(0, found.index)),
    { shown: codeFigure(language!, caption!, source!.trimEnd()), isCode: true },
    ...blocksOf(markdown.slice(found.index + whole.length)),
  ];
}

function plainBlocksOf(markdown: string): readonly Block[] {
  return markdown
    .split(/\n{2,}/)
    .map((block) => block.trim())
    .filter((block) => block !== '')
    .map((block) => ({ shown: blockOf(block), isCode: false }));
}

function blockOf(block: string): Html {
  if (block.startsWith('### ')) {
    const title = block.slice('### '.length);
    return html`<h3 id="${slugOf(title)}">${title}</h3>`;
  }
  if (block.startsWith('- ')) {
    const items = block.slice('- '.length).split(/\n- /);
    return html`<ul>${items.map((item) => html`<li>${inline(item)}</li>`)}</ul>`;
  }
  return block.startsWith('| ') ? tableOf(block.split('\n')) : html`<p>${inline(block)}</p>`;
}

/** Gives each row an anchor made of the first column's heading and cell: `#code-required`, `#status-404`. */
function tableOf([head, , ...rows]: readonly string[]): Html {
  const names = cellsOf(head!);
  const row = (line: string): Html => {
    const cells = cellsOf(line);
    const id = `${slugOf(names[0]!)}-${slugOf(cells[0]!)}`;
    return html`<tr id="${id}">${cells.map((cell, at) =>
      at === 0
        ? html`<th scope="row">${inline(cell)}</th>`
        : html`<td data-head="${names[at]!}">${inline(cell)}</td>`,
    )}</tr>`;
  };
  return html`<table><thead><tr>${names.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead><tbody>${rows.map(row)}</tbody></table>`;
}

function cellsOf(line: string): readonly string[] {
  return line.slice('| '.length, -' |'.length).split(' | ');
}

const inlineForms = /`([^`]+)`|\[((?:[^\]`]|`[^`]*`)+)\]\(([^)\s]+)\)|\*\*([^*]+)\*\*/g;
const safeTarget = /^(?:#|\/|https:\/\/)/;

export function inline(text: string): Html {
  const pieces: (Html | string)[] = [];
  let from = 0;
  for (const { 0: whole, 1: code, 2: label, 3: target, 4: strong, index } of text.matchAll(inlineForms)) {
    pieces.push(text.slice(from, index), formOf(whole, code, label, target, strong));
    from = index + whole.length;
  }
  return html`${[...pieces, text.slice(from)]}`;
}

function formOf(
  whole: string,
  code: string | undefined,
  label: string | undefined,
  target: string | undefined,
  strong: string | undefined,
): Html | string {
  if (code !== undefined) return html`<code>${code}</code>`;
  if (strong !== undefined) return html`<strong>${strong}</strong>`;
  if (label === undefined || target === undefined || !safeTarget.test(target)) return whole;
  return html`<a href="${target}">${inline(label)}</a>`;
}

/** Returns the anchor of a title. Underscores and colons stay, so that anchors contain codes and scopes unchanged. */
export function slugOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^a-z0-9_:]+/g, '-')
    .replaceAll(/^-|-$/g, '');
}
