// What was believed and what really came: boards, texts, images, and numbers.
const ACROSS = 200; // units of a board's longer side: lines and hatching look alike on all boards

// A board of cells. `options`: heat (a map from cell to share and number), other cells to compare with.
function drawBoard(board, cells, options) {
  const { rows, columns, things } = board, size = ACROSS / Math.max(rows, columns), parts = [];
  const x = (cell) => (cell % columns) * size, y = (cell) => Math.floor(cell / columns) * size;
  for (let cell = 0; cell < rows * columns; cell += 1) {
    const thing = things[cells[cell]], other = options.other ? things[options.other[cell]] : thing;
    const warm = options.heat && options.heat.get(cell);
    const name = thing === other ? thing.name : `believed ${thing.name}, really ${other.name}`;
    const title = svg("title", {}, `row ${Math.floor(cell / columns)}, column ${cell % columns}: ${name}${warm ? `, U ${words(warm.u)}` : ""}`);
    if (thing === other) {
      const faint = options.other ? " faint" : "";
      parts.push(svg("rect", { class: `cell${faint}`, x: x(cell), y: y(cell), width: size, height: size, fill: thing.colour }, title));
    } else {
      parts.push(svg("path", { class: "cell", d: `M${x(cell)} ${y(cell)}h${size}l${-size} ${size}z`, fill: thing.colour }, title));
      parts.push(svg("path", { class: "cell", d: `M${x(cell) + size} ${y(cell) + size}h${-size}l${size} ${-size}z`, fill: other.colour }));
      parts.push(svg("rect", { class: "outline", x: x(cell) + 1, y: y(cell) + 1, width: size - 2, height: size - 2 }));
    }
  }
  for (const cell of board.broken) {
    const ground = cells[cell] === 0 && !(options.other && options.other[cell]);
    if (ground) parts.push(svg("rect", { class: "broken", x: x(cell), y: y(cell), width: size, height: size }));
    else parts.push(svg("path", { class: "broken", "fill-rule": "evenodd", d: frame(x(cell), y(cell), size, size / 6) }));
  }
  for (const [cell, { u, share }] of options.heat || []) {
    const opacity = 0.2 + 0.65 * share;
    if (cells[cell] === 0) parts.push(svg("rect", { class: "heat", x: x(cell), y: y(cell), width: size, height: size, opacity }));
    else parts.push(svg("path", { class: "heat", "fill-rule": "evenodd", d: frame(x(cell), y(cell), size, size / 6), opacity: 0.5 + 0.5 * share }));
    if (size > 16) parts.push(svg("text", { class: "u", x: x(cell) + size / 2, y: y(cell) + size / 2 + 2.5, "font-size": Math.min(11, size * 0.36) }, words(u, 2)));
  }
  return svg("svg", { class: "board", viewBox: `0 0 ${columns * size} ${rows * size}`, role: "img", "aria-label": options.label }, parts);
}

// A square with a hole: what lies in its middle stays visible.
const frame = (x, y, size, edge) => `M${x} ${y}h${size}v${size}h${-size}zM${x + edge} ${y + edge}v${size - 2 * edge}h${size - 2 * edge}v${2 * edge - size}z`;

function drawText(text, other) {
  if (typeof other !== "string") return html("pre", { class: "board text", tabindex: 0 }, text);
  const lines = text.split("\n"), others = other.split("\n");
  const drawn = lines.map((line, place) => {
    const against = others[place] || "";
    const parts = [...line].map((letter, column) => (letter === against[column] ? letter : html("mark", {}, against[column] || "·")));
    return [...parts, "\n"];
  });
  return html("pre", { class: "board text", tabindex: 0 }, drawn);
}

const picture = (image, alt) => html("img", { src: `data:image/png;base64,${image}`, alt });

function drawFrame(trace, frame, other, options) {
  if (!frame) return html("div", { class: "board none" }, options.missing);
  if (frame.cells) return drawBoard(trace.board, frame.cells, { ...options, other: other && other.cells });
  if (frame.text !== undefined) return drawText(frame.text, other && other.text);
  return html("div", { class: "board picture" }, picture(trace.images[frame.image], options.label), other && other.image !== undefined ? picture(trace.images[other.image], "") : null);
}

function outcomeWords(reward, terminal) {
  const said = [];
  if (reward !== null) said.push(`reward ${words(reward)}`);
  if (terminal !== null) said.push(terminal ? "the episode ends" : "goes on");
  return said.join(", ");
}

function verdictWords(move) {
  if (move.chance === null) return move.mistake ? "the model was wrong" : "as the model said";
  return move.mistake ? "the model held this impossible" : `the model gave this ${Math.round(100 * move.chance)}%`;
}

function countDifferences(trace, move) {
  if (!move.real || !move.believed) return "";
  if (move.real.cells) {
    const count = move.real.cells.filter((thing, cell) => thing !== move.believed.cells[cell]).length;
    if (count) return `${plural(count, "cell")}: believed ◤, real ◢`;
    return move.mistake ? "nothing that can be seen" : "none";
  }
  return move.mistake ? "the model was wrong" : "none";
}

function boardsCard(trace, move, showHeat, toggle) {
  const most = Math.max(0, ...move.heat.map(([, u]) => u));
  const heat = new Map(move.heat.map(([cell, u]) => [cell, { u, share: u / (most || 1) }]));
  const unknown = move.terminal === null && move.real === null ? "not observed" : "no picture";
  const really = outcomeWords(move.reward, move.terminal);
  const likely = move.chance === null ? "" : "most likely: ";
  const figure = (name, says, drawn) => html("figure", {}, html("figcaption", {}, html("h3", {}, name), html("span", { class: "says" }, says)), drawn);
  const pictures = move.now && html("div", { class: "boards" },
    figure("Now", heat.size && showHeat ? `U of “${move.action}” from each cell` : `about to do: ${move.action}`,
      drawFrame(trace, move.now, null, { label: "the state now", heat: showHeat ? heat : null, missing: "no picture" })),
    figure("Believed next", `${likely}${outcomeWords(move.believed_reward, move.believed_terminal)}`,
      drawFrame(trace, move.believed, null, { label: "the believed next state", missing: "the model does not say" })),
    figure("Real next", move.real ? really : "", drawFrame(trace, move.real, null, { label: "the real next state", missing: unknown })),
    figure("Difference", countDifferences(trace, move),
      drawFrame(trace, move.real && move.believed, move.real, { label: "where they differ", missing: unknown })));
  const keys = pictures && trace.board ? boardLegend(trace, most, showHeat) : null;
  const choice = html("label", { class: "choice small" },
    html("input", { type: "checkbox", id: "heat", onchange: toggle, ...(showHeat ? { checked: true } : {}) }), "show U over the cells");
  const verdict = move.surprise === null ? null : html("span", { class: `flag ${move.mistake ? "bad" : "good"}`, id: "verdict" }, verdictWords(move));
  return html("section", { class: "card", id: "boards", "aria-label": "believed and real" },
    html("div", { class: "top" }, html("h2", {}, "Believed and real"), verdict, trace.board && trace.episodes.some((one) => one.moves.some((other) => other.heat.length)) ? choice : null),
    pictures, keys, numbersTable(trace, move, !pictures, really));
}

// The things that are on any board of a trace, found once.
function usedThings(trace) {
  if (!trace.used) {
    trace.used = new Set();
    for (const episode of trace.episodes) for (const move of episode.moves) for (const one of [move.now, move.believed, move.real]) if (one && one.cells) one.cells.forEach((thing) => trace.used.add(thing));
  }
  return trace.used;
}

function boardLegend(trace, most, showHeat) {
  const things = trace.board.things.filter((_, number) => usedThings(trace).has(number)).map(({ name, colour }) => html("li", {}, svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("rect", { width: 16, height: 16, fill: colour })), name));
  if (trace.board.broken.length) {
    things.push(html("li", {}, svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("rect", { width: 16, height: 16, fill: "#11151b" }), svg("rect", { width: 16, height: 16, fill: "url(#hatch-board)" })), "broken: world and model differ"));
  }
  if (most && showHeat) things.push(html("li", {}, html("span", { class: "ramp heat" }), `U, up to ${words(most)}`));
  return html("ul", { class: "legend" }, things);
}

// The numbers of the states; where there is a picture, only those that differ.
function numbersTable(trace, move, alone, really) {
  const differs = ([, , believed, real]) => believed !== null && real !== null && believed !== real;
  const wrong = move.numbers.filter(differs);
  const rows = alone ? [...wrong, ...move.numbers.filter((row) => !differs(row))] : wrong;
  if (!rows.length) return null;
  const cell = (number) => html("td", { class: "number" }, words(number, 4));
  const body = rows.map((row) => html("tr", { class: differs(row) ? "differs" : null },
    html("th", { scope: "row", class: "name" }, trace.features[row[0]]), row.slice(1).map(cell),
    html("td", { class: "number" }, differs(row) ? signed(Number((row[3] - row[2]).toPrecision(4))) : "")));
  const head = ["", "now", "believed", "real", "apart"].map((name) => html("th", { scope: "col", class: name ? "number" : null }, name));
  const table = html("div", { class: "scroll" }, html("table", { id: "numbers" }, html("thead", {}, html("tr", {}, head)), html("tbody", {}, body)));
  if (alone) {
    const believed = outcomeWords(move.believed_reward, move.believed_terminal);
    const said = [believed && `Believed: ${believed}.`, move.surprise !== null && really && `Really: ${really}.`].filter(Boolean).join(" ");
    return html("div", {}, said && html("p", { class: "soft" }, said), table);
  }
  return html("details", { open: wrong.length <= 6 }, html("summary", { class: "small" }, `${plural(wrong.length, "number")} of the state ${wrong.length === 1 ? "differs" : "differ"}`), table);
}
