// Runs in a page: the texts whose colour is too near to what is behind them, once for each pair of colours. Called
// with the least contrast that is enough.

globalThis.faintTexts = (least) => {
  const read = (text) => {
    const [red = 0, green = 0, blue = 0, alpha = 1] = (text.match(/[\d.]+/g) ?? []).map(Number);
    return { red, green, blue, alpha };
  };
  const linear = (part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  const luminance = ({ red, green, blue }) =>
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const behind = (element) => {
    for (let one = element; one !== null; one = one.parentElement) {
      const colour = read(getComputedStyle(one).backgroundColor);
      if (colour.alpha > 0) return colour;
    }
    return { red: 255, green: 255, blue: 255, alpha: 1 };
  };
  const pairs = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const text = node.textContent.trim();
    const element = node.parentElement;
    if (text === '') continue;
    const paper = behind(element);
    const ink = read(getComputedStyle(element).color);
    const [darker, lighter] = [luminance(paper), luminance(ink)].sort((a, b) => a - b);
    const contrast = (lighter + 0.05) / (darker + 0.05);
    const pair = `${JSON.stringify(ink)} on ${JSON.stringify(paper)}`;
    if (!pairs.has(pair)) pairs.set(pair, contrast < least ? `${text}: ${pair}: ${contrast}` : '');
  }
  return { texts: [...pairs.values()].filter((text) => text !== ''), looked: pairs.size };
};
