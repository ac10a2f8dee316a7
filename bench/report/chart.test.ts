import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { shareOfBound } from './chart/figures.ts';
import { textWidth } from './chart/svg.ts';
import { chart } from './chart.ts';
import { median } from './statistics.ts';
import { comparison, figure, ordinary, results, series, straining } from './testing/sample-results.ts';
import { elementsOf, parseXml, textOf, type XmlElement } from './testing/xml.ts';

interface Box {
  readonly text: string;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

const number = (element: XmlElement, name: string): number => Number(element.attributes[name]);

/** What each text covers, by the sizes that the chart's own styles give. */
function textBoxes(svg: XmlElement): Box[] {
  const styles = textOf(elementsOf(svg, 'style')[0]!);
  const fonts = new Map(
    [...styles.matchAll(/\.(\w+) \{ font-size: (\d+)px; font-weight: (\d+); \}/g)].map(
      ([, name, size, weight]) => [name, { sizePx: Number(size), isBold: Number(weight) > 400 }],
    ),
  );
  return elementsOf(svg, 'text').map((element) => {
    const spans = elementsOf(element, 'tspan');
    const used = spans.map((span) => fonts.get(span.attributes.class)!);
    const width = spans.reduce(
      (sum, span, index) => sum + Number(span.attributes.dx ?? 0) + textWidth(textOf(span), used[index]!),
      0,
    );
    const left = number(element, 'x') - (element.attributes['text-anchor'] === 'middle' ? width / 2 : 0);
    const sizePx = Math.max(...used.map((font) => font.sizePx));
    const baseline = number(element, 'y');
    return {
      text: textOf(element),
      left,
      right: left + width,
      top: baseline - sizePx * 0.75,
      bottom: baseline + sizePx * 0.2,
    };
  });
}

/** The bars, without the sheet behind them. */
function barsOf(svg: XmlElement): XmlElement[] {
  return elementsOf(svg, 'rect').slice(1);
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

for (const [name, sample] of Object.entries({ ordinary, straining, empty: results() })) {
  describe(`the chart of ${name} results`, () => {
    const svg = parseXml(chart(sample));
    const height = number(svg, 'height');

    test('is SVG of its own size, with a title and a background', () => {
      assert.equal(svg.name, 'svg');
      assert.equal(svg.attributes.viewBox, `0 0 960 ${height}`);
      assert.equal(textOf(elementsOf(svg, 'title')[0]!), 'Headgate benchmark');
      const sheet = elementsOf(svg, 'rect')[0]!;
      assert.deepEqual([number(sheet, 'width'), number(sheet, 'height')], [959, height - 1]);
    });

    test('keeps all text on the sheet, and none upon another or upon a bar', () => {
      const texts = textBoxes(svg);
      const bars = barsOf(svg).map((bar) => ({
        text: 'a bar',
        left: number(bar, 'x'),
        right: number(bar, 'x') + number(bar, 'width'),
        top: number(bar, 'y'),
        bottom: number(bar, 'y') + number(bar, 'height'),
      }));
      for (const [index, box] of texts.entries()) {
        assert.ok(box.left >= 40 && box.right <= 921 && box.top > 0 && box.bottom < height, box.text);
        for (const other of [...texts.slice(index + 1), ...bars]) {
          assert.ok(!overlap(box, other), `${box.text} lies upon ${other.text}`);
        }
      }
    });

    test('has only numbers for its places and lengths', () => {
      for (const kind of ['rect', 'line', 'text']) {
        for (const { attributes } of elementsOf(svg, kind)) {
          for (const key of ['x', 'y', 'x1', 'x2', 'y1', 'y2', 'width', 'height']) {
            assert.match(attributes[key] ?? '0', /^\d+(\.\d)?$/);
          }
        }
      }
      for (const { attributes } of elementsOf(svg, 'path'))
        assert.doesNotMatch(attributes.d!, /NaN|Infinity|\.\d\d/);
    });

    test('is the same every time', () => {
      assert.equal(chart(structuredClone(sample)), chart(sample));
    });
  });
}

test('text that looks like markup is shown as it is', () => {
  const title = `<i>"R&D's"</i> &lt;`;
  const svg = parseXml(
    chart(
      results({
        figures: [figure([1], { atLeast: 1 }, { title })],
        comparisons: [comparison([series(title, [1])])],
      }),
    ),
  );
  const texts = elementsOf(svg, 'text').map(textOf);
  assert.equal(texts.filter((text) => text === title).length, 2);
  assert.deepEqual(elementsOf(svg, 'i'), []);
});

test('characters that XML cannot hold do not get into it', () => {
  const title = 'a\u0000b\ufffe\ud800c\u001b[1md';
  const svg = parseXml(chart(results({ comparisons: [comparison([series('Headgate', [1])], { title })] })));
  assert.ok(elementsOf(svg, 'text').some((text) => textOf(text) === 'a b\ufffd\ufffdcd'));
});

test('bars are as long as their medians, from a common start, and Headgate has a colour of its own', () => {
  const all = [
    series('Headgate, SQLite', [80_000, 100_000, 90_000]),
    series('Headgates of others', [1_000, 45_000, 90_000]),
  ];
  const [own, other] = barsOf(parseXml(chart(results({ comparisons: [comparison(all)] })))) as [
    XmlElement,
    XmlElement,
  ];
  assert.equal(own.attributes.x, other.attributes.x);
  assert.ok(Math.abs(number(own, 'width') - 2 * number(other, 'width')) <= 0.2);
  assert.notEqual(own.attributes.fill, other.attributes.fill);
});

test('a value far below the others is still there, with its number', () => {
  const svg = parseXml(
    chart(results({ comparisons: [comparison([series('Headgate', [1e9]), series('Other', [1])])] })),
  );
  assert.ok(number(barsOf(svg)[1]!, 'width') >= 1);
  assert.ok(elementsOf(svg, 'text').some((text) => textOf(text) === '1.00'));
});

test('whiskers reach from the lowest round to the highest, and one round has none', () => {
  const whiskers = (values: readonly number[]): XmlElement[] => {
    const svg = parseXml(chart(results({ comparisons: [comparison([series('Headgate', values)])] })));
    return elementsOf(svg, 'line').filter((line) => line.attributes.class === 'whisker');
  };
  assert.deepEqual(whiskers([5]), []);
  const across = whiskers([50, 100, 25]).find((line) => line.attributes.x1 !== line.attributes.x2)!;
  const from = number(across, 'x1') - 280;
  const to = number(across, 'x2') - 280;
  assert.ok(Math.abs(to - 4 * from) <= 0.5, `${from} to ${to}`);
});

test('a figure is drawn right of the line when met and left of it when missed, at its bound too, and says so', () => {
  const svg = parseXml(chart(straining));
  const line = elementsOf(svg, 'line').find((one) => one.attributes['stroke-width'] === '1.5')!;
  const bounded = straining.figures.filter(({ bound }) => bound !== null);
  const sides = barsOf(svg)
    .slice(0, bounded.length)
    .map((bar) => {
      const [from, to] = [number(bar, 'x'), number(bar, 'x') + number(bar, 'width')];
      if (Math.abs(from - number(line, 'x1')) <= 0.2) return 'met';
      return Math.abs(to - number(line, 'x1')) <= 0.2 ? 'missed' : 'neither';
    });
  assert.deepEqual(sides, ['met', 'missed', 'missed', 'met', 'met', 'missed', 'missed']);
  const words = elementsOf(svg, 'text').map(textOf);
  assert.deepEqual(
    words.filter((word) => word === 'met' || word === 'missed'),
    sides,
  );
  assert.equal(words.filter((word) => word === 'no bound').length, 1);
});

test('the scale is the same for both kinds of bound: twice as good is as far for one as for the other', () => {
  assert.equal(shareOfBound({ atLeast: 2 }, 4), shareOfBound({ below: 50 }, 25));
  assert.equal(shareOfBound({ atLeast: 2 }, 1), shareOfBound({ below: 50 }, 100));
  const [more, less] = barsOf(
    parseXml(
      chart(
        results({
          figures: [figure([4], { atLeast: 2 }), figure([25], { below: 50 }, { id: 'less', unit: 'ms' })],
        }),
      ),
    ),
  ) as [XmlElement, XmlElement];
  assert.equal(more.attributes.width, less.attributes.width);
});

test('the description tells every figure to those who do not see the picture', () => {
  const description = textOf(elementsOf(parseXml(chart(ordinary)), 'desc')[0]!);
  for (const { title } of ordinary.figures) assert.ok(description.includes(title), title);
  assert.match(description, /Memory after a million records: 214 MB, met\./);
  assert.equal(median(ordinary.figures[4]!.values), 214);
});

describe('the parser of these tests refuses', () => {
  const malformed: Readonly<Record<string, string>> = {
    'an element left open': '<a><b></a>',
    'a bare ampersand': '<a>R&D</a>',
    'an unknown reference': '<a>&nbsp;</a>',
    'an unquoted value': '<a b=1/>',
    'a bare less-than in a value': '<a b="<"/>',
    'an attribute twice': '<a b="1" b="2"/>',
    'two roots': '<a/><b/>',
    'a control character': '<a>\u0001</a>',
    'an end too early': '<a>text',
  };
  for (const [name, source] of Object.entries(malformed)) {
    test(name, () => {
      assert.throws(() => parseXml(source), SyntaxError);
    });
  }
});
