// The search as an icicle: a row for every step ahead, as wide as it was visited.
const DOUBTFUL = 1, DELETED = 2, ENDS = 4, SHARED = 8;
const ROW = 27, LEVELS = 10, FEW = 5, LETTER = 7, NARROWEST = 1.2, SLOT = 13;

class Icicle {
  constructor(trace, plan, planner, alone) {
    Object.assign(this, { trace, plan, planner, alone, zoom: 0, selected: 0, step: null, timer: null });
    this.names = plan.labels.length ? plan.labels : trace.actions;
    const nodes = plan.nodes;
    this.children = nodes.parent.map(() => []);
    nodes.parent.forEach((parent, node) => { if (parent >= 0) this.children[parent].push(node); });
    this.graph = plan.kind === "graph";
    this.noun = this.graph ? "expansion" : "iteration";
    const seen = nodes.value.filter((value, node) => value !== null && this.shows(node));
    this.low = Math.min(...seen);
    this.high = Math.max(...seen);
    this.part = this.build();
  }

  // Means of few visits say little; values of a graph are backed up and not averaged.
  shows(node) { return this.graph || this.plan.nodes.visits[node] >= FEW; }
  flag(node, which) { return (this.plan.nodes.flags[node] & which) !== 0; }

  name(node) {
    if (node === 0) return "now";
    const chance = this.plan.nodes.chance[node];
    if (chance !== null) return `${Math.round(100 * chance)}%`;
    const action = this.plan.nodes.action[node];
    return this.names[action] === undefined ? String(action) : this.names[action];
  }

  path(node) {
    const found = [];
    for (let one = node; one >= 0; one = this.plan.nodes.parent[one]) found.unshift(one);
    return found;
  }

  build() {
    const last = this.plan.expansions.length;
    this.host = html("div", { class: "icicle", tabindex: 0, role: "application", "aria-label": `search tree of ${this.planner.name}: arrow keys move, Enter zooms in, Escape zooms out`, onkeydown: (event) => this.key(event) });
    this.crumbs = html("div", { class: "crumbs" });
    this.detail = html("p", { class: "detail", "aria-live": "polite" });
    this.slider = html("input", { type: "range", min: 0, max: last, value: last, "aria-label": "iteration", oninput: () => this.seek(Number(this.slider.value)) });
    this.output = html("output", {});
    this.player = html("button", { type: "button", class: "replayer", onclick: () => this.toggle() }, "▶ replay");
    const replay = last > 0 ? html("div", { class: "replay" }, this.player, this.slider, this.output)
      : html("p", { class: "soft small" }, this.graph ? "nothing to replay: the searches before had expanded everything" : "nothing to replay: the search expanded nothing, or took too many iterations to record");
    const kind = this.graph ? "graph, unfolded" : "tree";
    return html("section", { class: "card search", "aria-label": `search of ${this.planner.name}` },
      html("div", { class: "top" }, html("h2", {}, "The search"), html("span", { class: "soft small" }, `a ${kind}; every row looks one step further ahead`)),
      replay, this.crumbs, this.host, this.detail, this.legend());
  }

  legend() {
    const swatch = (...inside) => svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, inside);
    const ground = (fill) => svg("rect", { width: 16, height: 16, fill });
    const items = [html("li", {}, "width: visits")];
    if (this.low < this.high) items.push(html("li", {}, html("span", {}, words(this.low)), html("span", { class: "ramp value" }), html("span", {}, `${words(this.high)} value`)));
    if (!this.graph) items.push(html("li", {}, swatch(ground("var(--shade)")), `under ${FEW} visits: value hidden`));
    const any = (which) => this.plan.nodes.flags.some((flags) => flags & which);
    if (any(DOUBTFUL)) items.push(html("li", {}, swatch(ground("var(--low)"), ground("url(#hatch-tree)")), "doubtful: U above 0"));
    if (any(DELETED)) items.push(html("li", {}, swatch(ground("var(--shade)"), svg("path", { d: "M2 14L14 2", stroke: "var(--soft)", "stroke-width": 2 })), "deleted"));
    if (any(SHARED)) items.push(html("li", {}, "↺ shown elsewhere"));
    if (any(ENDS)) items.push(html("li", {}, "■ the episode ends"));
    if (this.plan.nodes.chance.some((chance) => chance !== null)) items.push(html("li", {}, "dashed: an outcome, with its probability"));
    return html("ul", { class: "legend" }, items);
  }

  // How wide each node is: its visits, or how many iterations of the replay have passed it so far.
  weights() {
    const nodes = this.plan.nodes, count = nodes.parent.length;
    if (this.step === null) return nodes.visits.map((visits, node) => (this.flag(node, DELETED) ? 0 : Math.max(visits, node ? 0.3 : 1)));
    const found = new Array(count).fill(0), first = new Array(count).fill(Infinity);
    const passed = new Array(count).fill(false);
    this.plan.expansions.forEach((node, place) => { if (node >= 0) first[node] = Math.min(first[node], place); });
    this.plan.ends.forEach((node, place) => {
      for (let one = node; one >= 0; one = nodes.parent[one]) {
        passed[one] = true;
        if (place < this.step) found[one] += 1;
      }
    });
    // The children of a node are made together, continuous actions one by one.
    const made = (node, parent) => (this.plan.labels.length ? found[node] > 0 || !passed[node] : first[parent] === Infinity || first[parent] < this.step);
    const there = new Array(count).fill(true);
    for (let node = 1; node < count; node += 1) there[node] = there[nodes.parent[node]] && made(node, nodes.parent[node]);
    return found.map((number, node) => (!there[node] || this.flag(node, DELETED) ? 0 : number + 0.4));
  }

  draw() {
    const width = Math.max(200, this.host.clientWidth);
    const colour = valueColours(), weights = this.weights(), groups = [];
    let deepest = 0;
    const place = (node, x, wide, level) => {
      if (wide < NARROWEST || level >= LEVELS) return;
      deepest = Math.max(deepest, level);
      groups.push(this.box(node, x, wide, level, colour));
      if (this.step !== null && weights[node] === 0) return;
      const shown = this.children[node];
      const gone = shown.filter((child) => this.flag(child, DELETED)), others = shown.filter((child) => !this.flag(child, DELETED));
      const slots = Math.min(SLOT * gone.length, wide * 0.3);
      const more = this.plan.nodes.more[node], note = more && others.length && wide > 120 ? 46 : 0;
      const sum = others.reduce((total, child) => total + weights[child], 0);
      const room = wide - slots - note, total = this.step === null && !this.graph ? Math.max(sum, Math.min(weights[node], sum * 1.25)) : sum;
      let left = x;
      for (const child of others) {
        const part = total > 0 ? (room * weights[child]) / total : 0;
        place(child, left, part, level + 1);
        left += part;
      }
      if (this.step === null) for (const child of gone) {
        place(child, left, slots / gone.length, level + 1);
        left += slots / gone.length;
      }
      if (note && level + 1 < LEVELS) groups.push(svg("text", { class: "more", x: left + 5, y: (level + 1) * ROW + 17 }, `+${more} more`));
    };
    this.walked = new Set(this.step > 0 && this.end() >= 0 ? this.path(this.end()) : []);
    place(this.zoom, 0, width, 0);
    const height = (Math.min(LEVELS, Math.max(deepest + 1, this.tall || 0))) * ROW + 1;
    this.tall = Math.max(this.tall || 0, deepest + 1);
    this.host.replaceChildren(svg("svg", { height, viewBox: `0 0 ${width} ${height}` }, groups));
    this.describe();
  }

  box(node, x, wide, level, colour) {
    const nodes = this.plan.nodes, value = nodes.value[node], y = level * ROW;
    const gone = this.flag(node, DELETED), known = value !== null && this.shows(node) && !gone;
    const look = known ? colour(this.high > this.low ? (value - this.low) / (this.high - this.low) : 0.5) : null;
    const chosen = nodes.parent[node] === 0 && nodes.action[node] === this.plan.action && nodes.chance[node] === null;
    const kind = ["box", !known && "hidden", gone && "deleted", nodes.chance[node] !== null && "chance", chosen && "chosen", this.walked.has(node) && "walked", node === this.selected && node !== this.zoom && "selected"];
    const group = svg("g", { class: kind.filter(Boolean).join(" "), "data-node": node });
    group.append(svg("rect", { class: "node", x: x + 0.6, y: y + 0.6, width: Math.max(0.8, wide - 1.2), height: ROW - 1.2, rx: wide > 6 ? 3 : 0, fill: look && look.fill, onclick: () => this.enter(node), onpointerenter: () => this.select(node) }, svg("title", {}, this.sentence(node))));
    if (this.flag(node, DOUBTFUL) && !gone) group.append(svg("rect", { class: "hatch", x: x + 0.6, y: y + ROW - 7.6, width: Math.max(0.8, wide - 1.2), height: 7 }));
    if (gone) group.append(svg("line", { class: "strike", x1: x + 2, x2: x + wide - 2, y1: y + ROW - 4, y2: y + 4 }));
    const text = this.text(node, wide - 8, known);
    if (text) group.append(svg("text", { x: x + 5, y: y + 16, fill: look && look.text, style: look && `fill: ${look.text}` }, text));
    return group;
  }

  text(node, room, known) {
    const mark = this.flag(node, SHARED) ? " ↺" : this.flag(node, ENDS) ? " ■" : "";
    const name = this.name(node), value = known ? ` · ${words(this.plan.nodes.value[node], 2)}` : "";
    const letters = Math.floor(room / LETTER);
    for (const text of [`${name}${mark}${value}`, `${name}${mark}`, name]) if (text.length <= letters) return text;
    return letters >= 3 ? `${name.slice(0, letters - 1)}…` : "";
  }

  sentence(node) {
    const nodes = this.plan.nodes;
    if (node === 0) return `now: ${plural(nodes.visits[0], "visit")}`;
    const said = [plural(nodes.visits[node], "visit")];
    if (nodes.value[node] !== null) said.push(this.shows(node) ? `value ${words(nodes.value[node])}` : `value hidden: under ${FEW} visits`);
    if (nodes.chance[node] !== null) said.push(`probability ${words(nodes.chance[node])}`);
    else said.push(`U ${words(nodes.doubt[node])}`);
    if (this.flag(node, DELETED)) said.push("deleted: the model is doubtful here");
    if (this.flag(node, ENDS)) said.push("the episode ends");
    if (this.flag(node, SHARED)) said.push("the same state is shown elsewhere");
    if (nodes.more[node]) said.push(`+${nodes.more[node]} more below`);
    return `${this.path(node).slice(1).map((one) => this.name(one)).join(" › ")}: ${said.join(", ")}`;
  }

  // Where the path of the latest iteration of the replay ended.
  end() { return this.plan.ends[this.step - 1]; }

  iterationWords() {
    const { noun } = this, end = this.end(), expanded = this.plan.expansions[this.step - 1] >= 0;
    if (end < 0) return `${noun} ${this.step}: its path was not recorded`;
    const way = this.path(end).slice(1).map((one) => this.name(one)).join(" › ") || "now";
    const what = this.flag(end, ENDS) ? "the episode ends there" : expanded ? "newly expanded" : "visited";
    return `${noun} ${this.step}: ${way}, ${what}`;
  }

  describe() {
    this.detail.textContent = this.step > 0 ? this.iterationWords() : this.sentence(this.selected);
    const path = this.path(this.zoom);
    this.crumbs.replaceChildren(...path.flatMap((node, place) => [
      place ? html("span", { "aria-hidden": "true" }, "›") : null,
      node === this.zoom ? html("strong", {}, this.name(node)) : html("button", { type: "button", class: "plain", onclick: () => this.enter(node) }, this.name(node)),
    ]).filter(Boolean), this.zoom ? html("button", { type: "button", class: "plain out", onclick: () => this.out() }, "zoom out") : html("span", { class: "small" }, "click a box to zoom in"));
    const last = this.plan.expansions.length;
    const { noun } = this;
    this.output.textContent = this.step === null ? `all ${plural(last, noun)}` : `${noun} ${this.step} of ${last}`;
  }

  select(node) {
    if (node === this.selected) return;
    const find = (one) => this.host.querySelector(`[data-node="${one}"]`);
    if (find(this.selected)) find(this.selected).classList.remove("selected");
    this.selected = node;
    if (find(node)) find(node).classList.add("selected");
    this.detail.textContent = this.sentence(node);
  }

  enter(node) {
    this.zoom = this.children[node].length ? node : Math.max(0, this.plan.nodes.parent[node]);
    this.selected = node;
    this.tall = 0;
    this.draw();
  }

  out() { if (this.zoom) this.enter(this.plan.nodes.parent[this.zoom]); }

  key(event) {
    const parent = this.plan.nodes.parent[this.selected];
    const siblings = parent >= 0 && this.selected !== this.zoom ? this.children[parent] : [this.selected];
    const at = siblings.indexOf(this.selected);
    const moves = {
      ArrowRight: () => this.select(siblings[Math.min(siblings.length - 1, at + 1)]),
      ArrowLeft: () => this.select(siblings[Math.max(0, at - 1)]),
      ArrowDown: () => this.children[this.selected].length && this.select(this.children[this.selected][0]),
      ArrowUp: () => this.selected !== this.zoom && parent >= 0 && this.select(parent),
      Enter: () => this.enter(this.selected),
      Escape: () => this.out(),
    };
    if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    moves[event.key]();
    event.preventDefault();
    event.stopPropagation();
  }

  seek(step) {
    const last = this.plan.expansions.length;
    this.step = step >= last ? null : step;
    this.slider.value = step;
    this.draw();
  }

  toggle() {
    if (this.timer) { this.stop(); return; }
    const last = this.plan.expansions.length, pace = Math.max(1, Math.round(last / 120));
    let step = this.step === null ? 0 : this.step;
    this.player.textContent = "❚❚ pause";
    this.seek(step);
    this.timer = setInterval(() => {
      step += pace;
      this.seek(Math.min(step, last));
      if (step >= last) this.stop();
    }, 90);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.player.textContent = "▶ replay";
  }
}
