// Bytes of a line as pieces of text with classes: colours, streams and matches.

// CSI with its parameters and its end, strings (OSC, DCS, SOS, PM, APC), character sets, and all others. One that is cut
// off has no text either.
const ESCAPES = /\x1b(?:\[([0-?]*)([ -/]*[@-~]|[ -/]*$)|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]+[0-~]?|[0-~]|$)/g;
const decoder = new TextDecoder();

/** The colours and styles that are on. */
export const plain = () => ({ fg: null, bg: null, bold: false, dim: false, italic: false, underline: false, inverse: false });

/** The colour that follows 38, 48 or 58, and how many codes it takes. */
const indexed = ([kind, ...codes]) => {
  if (kind === 5) return [codes[0], 2];
  // Colours outside of the palette are shown by the nearest of its first sixteen.
  if (kind === 2) return [nearest(codes), 4];
  return [null, 1];
};

/** The same with colons, where the name of a colour space may come first. */
const separated = ([kind, ...codes]) => indexed([kind, ...(kind === 2 && codes.length > 3 ? codes.slice(1) : codes)])[0];

function nearest(codes) {
  const [red = 0, green = 0, blue = 0] = codes.map((code) => Math.min(code, 255));
  const most = Math.max(red, green, blue);
  if (most - Math.min(red, green, blue) < 40) return most < 60 ? 0 : most < 140 ? 8 : most < 210 ? 7 : 15;
  const bits = [red, green, blue].reduce((sum, value, bit) => sum + (value > most / 2 ? 1 << bit : 0), 0);
  return bits + (most > 190 ? 8 : 0);
}

/** The first sixteen colours of the 256 are the palette; the others are shown by the nearest of it. */
function palette(color) {
  if (color === null || color < 16) return color;
  if (color >= 232) return color < 238 ? 0 : color < 244 ? 8 : color < 250 ? 7 : 15;
  const cube = color - 16;
  return nearest([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((part) => part * 51));
}

function apply(style, text) {
  // Colons separate what belongs to one code.
  const groups = text.split(";").map((group) => group.split(":").map(Number));
  const codes = groups.map(([code]) => code);
  for (let at = 0; at < groups.length; at += 1) {
    const [code, ...parts] = groups[at];
    if (parts.length > 0) {
      if (code === 4) style.underline = parts[0] !== 0;
      if (code === 38) style.fg = palette(separated(parts) ?? null);
      if (code === 48) style.bg = palette(separated(parts) ?? null);
    } else if (code === 0) Object.assign(style, plain());
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.inverse = true;
    else if (code === 22) style.bold = style.dim = false;
    else if (code === 23) style.italic = false;
    else if (code === 24) style.underline = false;
    else if (code === 27) style.inverse = false;
    else if (code >= 30 && code <= 37) style.fg = code - 30;
    else if (code >= 90 && code <= 97) style.fg = code - 82;
    else if (code === 39) style.fg = null;
    else if (code >= 40 && code <= 47) style.bg = code - 40;
    else if (code >= 100 && code <= 107) style.bg = code - 92;
    else if (code === 49) style.bg = null;
    else if (code === 38 || code === 48 || code === 58) {
      const [color, skip] = indexed(codes.slice(at + 1));
      // The colour of an underline is not shown.
      if (code !== 58) style[code === 38 ? "fg" : "bg"] = palette(color ?? null);
      at += skip;
    }
  }
}

function classes(style, stream, isHit) {
  const names = [];
  if (style.fg !== null) names.push(`f${style.fg}`);
  if (style.bg !== null) names.push(`b${style.bg}`);
  for (const name of ["bold", "dim", "italic", "underline", "inverse"]) if (style[name]) names.push(name);
  if (stream) names.push(stream);
  if (isHit) names.push("hit");
  return names.join(" ");
}

/** What a person sees of these characters: a backspace takes one back, and other controls are marked. */
function visible(text) {
  const shown = [];
  for (const char of text.replace(/[\x07\x0e\x0f]/g, "")) {
    if (char === "\b") shown.pop();
    else shown.push(char);
  }
  return shown.join("").replace(/[\0-\x08\x0b-\x1f\x7f]/g, "�");
}

/** Where the text begins that a person sees: after the last carriage return that overwrote something. */
function visibleFrom(bytes) {
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] === 13 || bytes[end - 1] === 10)) end -= 1;
  return bytes.subarray(0, end).lastIndexOf(13) + 1;
}

const isIn = (ranges, offset) => ranges.some((range) => range.start <= offset && offset < range.end);

/**
 * The pieces of a line that begins at offset `start` of the log. `style` goes on from line to line; `streamAt(offset)`
 * names the stream of a byte; `hits` are ranges of the log.
 */
export function pieces({ bytes, start }, style, streamAt, hits) {
  const from = visibleFrom(bytes);
  const end = start + bytes.length;
  const cuts = new Set([start + from]);
  for (const hit of hits) for (const cut of [hit.start, hit.end]) if (cut > start + from && cut < end) cuts.add(cut);
  for (const cut of streamAt.changes(start + from, end)) cuts.add(cut);
  const sorted = [...cuts].sort((a, b) => a - b);
  const found = [];
  sorted.forEach((cut, index) => {
    const part = bytes.subarray(cut - start, (sorted[index + 1] ?? end) - start);
    const text = decoder.decode(part).replace(/[\r\n]+$/, "");
    const stream = streamAt(cut);
    const isHit = isIn(hits, cut);
    let last = 0;
    const push = (to) => {
      const shown = visible(text.slice(last, to));
      if (shown) found.push({ text: shown, names: classes(style, stream, isHit) });
    };
    for (const escape of text.matchAll(ESCAPES)) {
      push(escape.index);
      last = escape.index + escape[0].length;
      // With another character first, the codes are private ones.
      if (escape[2] === "m" && /^[0-9;:]*$/.test(escape[1])) apply(style, escape[1]);
    }
    push(text.length);
  });
  return found;
}
