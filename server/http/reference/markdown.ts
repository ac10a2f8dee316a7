// Converts Markdown to HTML. It supports only what the API description uses: headings, paragraphs, lists, tables,
// inline code and links, and in sections fenced code.

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
    const code = [...text.matchAll(fence)].map(([, language, caption, source]) =>
      codeFigure(language!, caption!, source!.trimEnd()),
    );
    return { id: slugOf(title), title, text: paragraphs(text.slice(end).replaceAll(fence, '')), code };
  });
  return { opening: paragraphs(opening), sections };
}

/** Matches a fenced block of code. The text after the language is the caption. */
const fence = /^```(\w+) (.+)\n([\s\S]*?)^```$/gm;

export function paragraphs(markdown: string): Html {
  const blocks = markdown.split(/\n{2,}/).map((block) => block.trim());
  return joined(blocks.filter((block) => block !== '').map(blockOf), '\n');
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

/** Matches code and links. Links whose target could run code do not match, so they are shown as text. */
const inlineForms =
  /`(?<code>[^`]+)`|\[(?<label>(?:[^\]`]|`[^`]*`)+)\]\((?<target>(?:#|\/|https:\/\/)[^)\s]*)\)/g;

export function inline(text: string): Html {
  const pieces: (Html | string)[] = [];
  let from = 0;
  for (const { 0: whole, groups, index } of text.matchAll(inlineForms)) {
    const { code, label, target } = groups!;
    const form =
      code === undefined ? html`<a href="${target!}">${inline(label!)}</a>` : html`<code>${code}</code>`;
    pieces.push(text.slice(from, index), form);
    from = index + whole.length;
  }
  return html`${[...pieces, text.slice(from)]}`;
}

/** Returns the anchor of a title. Underscores and colons stay, so that anchors contain codes and scopes unchanged. */
function slugOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^a-z0-9_:]+/g, '-')
    .replaceAll(/^-|-$/g, '');
}
