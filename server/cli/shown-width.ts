// Measures and shortens text by the width that a terminal shows it with: an ideograph or emoji is as wide as two letters.

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;
const invisible = /^[\p{M}\p{Cf}]*$/u;
const plain = /^[\x20-\x7e]*$/;
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Returns the number of columns of a terminal that the text takes. It must not contain control characters. */
export function shownWidth(text: string): number {
  if (plain.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += widthOf(segment);
  return width;
}

/** Returns the text, or its beginning with an ellipsis if it is wider than `most`. */
export function cutTo(text: string, most: number): string {
  if (plain.test(text) && text.length <= most) return text;
  let start = '';
  let width = 0;
  let isCut = false;
  for (const { segment } of segmenter.segment(text)) {
    const next = width + widthOf(segment);
    if (next > most) {
      isCut = true;
      break;
    }
    // What still fits with an ellipsis after it.
    if (next < most) start += segment;
    width = next;
  }
  return isCut ? `${start}…` : text;
}

function widthOf(segment: string): number {
  if (wide.test(segment)) return 2;
  return invisible.test(segment) ? 0 : 1;
}
