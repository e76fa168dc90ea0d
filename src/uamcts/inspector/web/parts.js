// Small tools: elements, numbers in words, colours, and the trace.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}
// All text of a trace goes through here as text, never as markup.
const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function words(number, digits = 3) {
  if (number === null || number === undefined) return "–";
  const size = Math.abs(number);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return number.toExponential(1).replace("-", "−");
  return String(Number(number.toPrecision(digits))).replace("-", "−");
}
const signed = (number) => (number > 0 ? `+${words(number)}` : words(number));
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const channels = (colour) => [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
const mix = (a, b, share) => a.map((part, place) => Math.round(part + share * (b[place] - part)));

// The colour of a value between the least and the greatest, and the colour of text on it.
function valueColours() {
  const stops = ["--low", "--mid", "--high"].map((name) => channels(theme(name)));
  return (share) => {
    const part = Math.min(1, Math.max(0, share));
    const colour = part < 0.5 ? mix(stops[0], stops[1], 2 * part) : mix(stops[1], stops[2], 2 * part - 1);
    const linear = colour.map((one) => (one / 255 <= 0.03928 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
    const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    return { fill: `rgb(${colour.join(" ")})`, text: light > 0.18 ? "#10151c" : "#ffffff" };
  };
}

function hatch(id, size, colour, width) {
  const line = svg("path", { d: `M-1 ${size + 1}L${size + 1} -1`, stroke: colour, "stroke-width": width, fill: "none" });
  const more = svg("path", { d: `M-1 1L1 -1M${size - 1} ${size + 1}L${size + 1} ${size - 1}`, stroke: colour, "stroke-width": width });
  return svg("pattern", { id, width: size, height: size, patternUnits: "userSpaceOnUse" }, line, more);
}

async function readTrace() {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to unpack the trace; use one from 2023 or later");
  const text = atob(document.getElementById("trace").textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place += 1) packed[place] = text.charCodeAt(place);
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(unpacked).text());
}
