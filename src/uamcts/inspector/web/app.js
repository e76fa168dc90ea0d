// The page: what is shown, and what keys and buttons do.
class App {
  constructor(trace, root) {
    this.trace = trace;
    this.root = root;
    this.heat = true;
    this.searches = [];
    this.build();
    this.openEpisode(0);
    const redraw = () => { this.timeline.draw(this.moves); this.timeline.show(this.at); this.searches.forEach((search) => search.draw()); };
    new ResizeObserver(() => { if (this.timeline.width !== Math.max(200, this.line.clientWidth)) redraw(); }).observe(this.line);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    document.addEventListener("keydown", (event) => this.key(event));
  }

  get episode() { return this.trace.episodes[this.number]; }
  get moves() { return this.episode.moves; }

  build() {
    const { trace } = this;
    const button = (id, face, label, action) => html("button", { type: "button", id, "aria-label": label, title: label, onclick: action }, ICONS[face] ? icon(face) : face);
    this.where = html("span", { class: "where", id: "where" });
    this.sentence = html("span", { class: "sentence", id: "sentence" });
    this.player = button("play", "play", "play the episode (space)", () => this.toggle());
    this.bar = html("div", { class: "bar", role: "group", "aria-label": "moves" },
      button("first", "first", "first move (Home)", () => this.go(0)), button("back", "back", "move before (left arrow)", () => this.go(this.at - 1)), this.player,
      button("next", "next", "next move (right arrow)", () => this.go(this.at + 1)), button("last", "last", "last move (End)", () => this.go(this.moves.length - 1)),
      button("wrong", [html("span", { class: "wide" }, "next mistake"), html("span", { class: "narrow" }, "▲ next")], "next mistake of the model (M)", () => this.nextMistake()), this.where, this.sentence);
    this.line = html("div", { class: "timeline", id: "timeline", tabindex: 0, role: "slider", "aria-label": "move" });
    this.timeline = new Timeline(this.line, trace, (place) => this.go(place));
    this.middle = html("div", {});
    this.below = html("div", { class: trace.planners.length === 1 ? "one" : "several" });
    const about = trace.planners.map((one) => html("details", { class: "small" }, html("summary", {}, one.name),
      html("p", { class: "soft" }, Object.entries(one.settings).map(([name, value]) => `${name} ${value}`).join(", ") || "no settings")));
    this.choice = html("select", { id: "episode", "aria-label": "episode", onchange: () => this.openEpisode(Number(this.choice.value)) },
      trace.episodes.map((episode, place) => html("option", { value: place }, this.title(episode, place))));
    const mistakes = trace.episodes.some((episode) => episode.moves.some((move) => move.mistake));
    const legend = html("ul", { class: "legend" }, mistakes ? html("li", {}, svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: "M2 13h12l-6 -10z", fill: "var(--bad)" })), "the model was wrong about this step") : null, html("li", { class: "keys" }, "drag, click, or press ← and →"));
    this.root.replaceChildren(
      svg("svg", { width: 0, height: 0, "aria-hidden": "true", style: "position: absolute" }, svg("defs", {}, hatch("hatch-board", 5, "#ff7849", 1.3), hatch("hatch-tree", 5, "var(--hatch)", 1.6))),
      html("header", {}, html("div", {}, html("h1", {}, trace.title), trace.summary && html("p", { class: "summary" }, trace.summary)),
        html("div", {}, trace.episodes.length > 1 ? this.choice : null, about)),
      this.bar,
      html("div", { class: "rows" }, html("section", { class: "card", "aria-label": "timeline" }, this.line, legend), this.middle, this.below),
      html("footer", {}, html("details", { class: "keys" }, html("summary", {}, "Keys"), html("dl", {}, [
        ["← →", "the move before, the next move"], ["Home, End", "the first move, the last move"], ["Space", "play the episode, or stop"], ["M", "the next mistake of the model"],
        ["in the search: arrows", "move between boxes; Enter zooms in, Escape zooms out"]].map(([name, text]) => [html("dt", {}, html("kbd", {}, name)), html("dd", {}, text)]))),
        html("span", {}, "Made by uamcts. This page holds all of its data and loads nothing.")));
  }

  title(episode, place) {
    const reward = episode.moves.reduce((total, move) => total + (move.reward || 0), 0);
    const who = this.trace.planners.length > 1 ? `${this.trace.planners[episode.planner].name} plays` : `episode ${place + 1}`;
    return `${who}: reward ${words(reward)} in ${plural(episode.moves.length, "move")}`;
  }

  openEpisode(number) {
    this.stop();
    const before = this.at || 0;
    this.number = number;
    this.timeline.planner = this.episode.planner;
    this.timeline.draw(this.moves);
    this.show(Math.min(before, this.moves.length - 1));
  }

  go(place) {
    const wanted = Math.min(this.moves.length - 1, Math.max(0, place));
    if (wanted !== this.at) this.show(wanted);
  }

  show(place) {
    this.at = place;
    const move = this.moves[place], { trace } = this;
    this.timeline.show(place);
    this.where.textContent = `move ${place + 1} of ${this.moves.length}`;
    const mine = trace.planners[this.episode.planner].name;
    const names = (plan) => (plan.labels.length ? plan.labels : trace.actions);
    const others = trace.planners.map((planner, number) => number !== this.episode.planner && move.plans[number] && `${planner.name} would do ${names(move.plans[number])[move.plans[number].action]}`).filter(Boolean);
    this.sentence.replaceChildren(`${mine} does ${move.action}`, ...others.map((text) => `; ${text}`), disagree(move) ? html("span", { class: "flag warm", id: "apart" }, "they disagree") : "");
    for (const [id, off] of [["first", place === 0], ["back", place === 0], ["next", place === this.moves.length - 1], ["last", place === this.moves.length - 1]]) this.bar.querySelector(`#${id}`).disabled = off;
    this.bar.querySelector("#wrong").disabled = !this.moves.some((one) => one.mistake);
    const toggle = () => { this.heat = !this.heat; this.show(this.at); document.getElementById("heat").focus(); };
    this.middle.replaceChildren(boardsCard(trace, move, this.heat, toggle));
    this.searches.forEach((search) => search.timer && search.stop());
    const found = move.plans.map((plan, number) => plan && new Icicle(trace, plan, trace.planners[number], trace.planners.length === 1));
    this.searches = found.filter(Boolean);
    const panels = trace.planners.map((_, number) => html("div", { class: "panel" }, actionsCard(trace, move, this.episode, number), found[number] && found[number].part));
    this.below.replaceChildren(...panels);
    this.searches.forEach((search) => search.draw());
  }

  nextMistake() {
    const order = this.moves.map((_, place) => (this.at + 1 + place) % this.moves.length);
    const found = order.find((place) => this.moves[place].mistake);
    if (found !== undefined) this.go(found);
  }

  toggle() {
    if (this.timer) { this.stop(); return; }
    if (this.at === this.moves.length - 1) this.show(0);
    this.player.replaceChildren(icon("pause"));
    this.player.setAttribute("aria-pressed", "true");
    this.timer = setInterval(() => {
      this.go(this.at + 1);
      if (this.at === this.moves.length - 1) this.stop();
    }, 450);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.player.replaceChildren(icon("play"));
    this.player.setAttribute("aria-pressed", "false");
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target, own = target.closest("input, select, textarea, summary");
    if (own || (event.key === " " && target.closest("button"))) return;
    const keys = {
      ArrowLeft: () => this.go(this.at - 1), ArrowRight: () => this.go(this.at + 1), Home: () => this.go(0), End: () => this.go(this.moves.length - 1),
      " ": () => this.toggle(), m: () => this.nextMistake(), M: () => this.nextMistake(),
    };
    if (!keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
  }
}

const ICONS = {
  first: "M4 3v10M13 3L6 8l7 5z", back: "M11.5 3L4.5 8l7 5z", next: "M4.5 3l7 5l-7 5z", last: "M12 3v10M3 3l7 5l-7 5z",
  play: "M3.5 2.5l10 5.5l-10 5.5z", pause: "M5 3v10M11 3v10",
};
const icon = (name) => svg("svg", { viewBox: "0 0 16 16", class: `icon ${name}`, "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));

readTrace().then((trace) => {
  window.inspector = new App(trace, document.getElementById("app"));
  performance.mark("drawn");
}).catch((error) => {
  document.getElementById("app").replaceChildren(html("p", { class: "flag bad" }, `The page cannot show its trace: ${error.message}`));
});
