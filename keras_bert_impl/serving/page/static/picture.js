// Pictures to save: a part of the page as it stands, as SVG or PNG.

import { element, shape } from "./dom.js";

const MARGIN = 16;
const SHARPER = 2; // dots of a PNG for each of the page
const BASELINE = 0.35; // of the size of letters, below their middle

/** Buttons that save what `place()` gives then. */
export function saveButtons(name, place) {
  const button = (kind, save) =>
    element("button", { type: "button", onclick: () => save(pictureOf(place()), `${name}.${kind}`) }, `Save as ${kind.toUpperCase()}`);
  return element("p", { class: "save" }, button("svg", saveDrawing), button("png", savePainting));
}

function saveDrawing(svg, name) {
  download(new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }), name);
}

function savePainting(svg, name) {
  painted(svg).toBlob((blob) => download(blob, name));
}

function download(blob, name) {
  const href = URL.createObjectURL(blob);
  element("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/**
 * A drawing of an element: its backgrounds, its words and the paths in it.
 *
 * The paths hold absolute pairs of numbers (M, L, C and Z), which are moved to where the page has them.
 */
export function pictureOf(place) {
  const frame = place.getBoundingClientRect();
  const [width, height] = [frame.width + 2 * MARGIN, frame.height + 2 * MARGIN];
  const shapes = [shape("path", { d: box({ left: 0, top: 0, right: width, bottom: height }), fill: groundOf(place) })];
  const [x, y] = [frame.left - MARGIN, frame.top - MARGIN];
  for (const one of [place, ...place.querySelectorAll("*")]) {
    if (!one.checkVisibility() || one.closest(".unseen, [data-aside]")) continue;
    shapes.push(...shapesOf(one, x, y));
  }
  return shape("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` }, ...shapes);
}

function groundOf(place) {
  const style = getComputedStyle(place);
  return isClear(style) && place.parentElement ? groundOf(place.parentElement) : style.backgroundColor;
}

/** A mixed colour as every program reads it. */
function plain(colour) {
  const of = (_, red, green, blue, alpha = "1") => `rgba(${[red, green, blue].map((one) => Math.round(255 * one))}, ${alpha})`;
  return colour.replace(/^color\(srgb (\S+) (\S+) ([^ )]+)(?: \/ ([^)]+))?\)$/, of);
}

function isClear({ backgroundColor }) {
  return /[,/] 0\)$/.test(backgroundColor);
}

function* shapesOf(one, x, y) {
  const style = getComputedStyle(one);
  if (one instanceof SVGPathElement) {
    const { a, d, e, f } = one.getScreenCTM();
    const moved = (_, left, top) => `${(a * left + e - x).toFixed(1)} ${(d * top + f - y).toFixed(1)}`;
    yield shape("path", {
      d: one.getAttribute("d").replace(/(-?[\d.]+) (-?[\d.]+)/g, moved),
      fill: style.fill,
      stroke: style.stroke,
      "stroke-width": Number.parseFloat(style.strokeWidth),
      "stroke-opacity": style.strokeOpacity,
    });
  } else if (one instanceof HTMLElement && !isClear(style)) {
    const { left, top, right, bottom } = one.getBoundingClientRect();
    yield shape("path", { d: box({ left: left - x, top: top - y, right: right - x, bottom: bottom - y }), fill: plain(style.backgroundColor) });
  }
  for (const node of one.childNodes) {
    if (node.nodeType !== Node.TEXT_NODE) continue;
    for (const word of node.data.matchAll(/\S+/g)) yield wordOf(node, word, style, x, y);
  }
}

function wordOf(node, { 0: word, index }, style, x, y) {
  const range = document.createRange();
  range.setStart(node, index);
  range.setEnd(node, index + word.length);
  const { left, right, top, bottom } = range.getBoundingClientRect();
  const size = Number.parseFloat(style.fontSize);
  const attributes = {
    x: (left + right) / 2 - x, // the middle, whichever way the text runs
    y: (top + bottom) / 2 + BASELINE * size - y,
    "text-anchor": "middle",
    fill: node.parentElement instanceof SVGElement ? style.fill : style.color,
    "font-size": size,
    "font-weight": style.fontWeight,
    "font-family": style.fontFamily,
  };
  return shape("text", attributes, word);
}

function box({ left, top, right, bottom }) {
  return `M${left} ${top}L${right} ${top}L${right} ${bottom}L${left} ${bottom}Z`;
}

/** The same on a canvas. An image of the drawing would need a policy that lets images be made. */
function painted(svg) {
  const size = (name) => Math.ceil(SHARPER * Number(svg.getAttribute(name)));
  const canvas = element("canvas", { width: size("width"), height: size("height") });
  const pen = canvas.getContext("2d");
  pen.scale(SHARPER, SHARPER);
  for (const part of svg.children) {
    const of = (name) => part.getAttribute(name);
    pen.fillStyle = of("fill");
    if (part.localName === "text") {
      pen.font = `${of("font-weight")} ${of("font-size")}px ${of("font-family")}`;
      pen.textAlign = "center";
      pen.fillText(part.textContent, Number(of("x")), Number(of("y")));
      continue;
    }
    const path = new Path2D(of("d"));
    if (of("fill") !== "none") pen.fill(path);
    if (!of("stroke") || of("stroke") === "none") continue;
    pen.globalAlpha = Number(of("stroke-opacity"));
    pen.strokeStyle = of("stroke");
    pen.lineWidth = Number(of("stroke-width"));
    pen.stroke(path);
    pen.globalAlpha = 1;
  }
  return canvas;
}
