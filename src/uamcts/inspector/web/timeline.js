// The episode at a glance: reward so far, value of the plan and surprise; mistakes of the model in red.
const LANE = 44, GAP = 22, SIDE = 8;

class Timeline {
  constructor(host, trace, jump) {
    this.host = host;
    this.trace = trace;
    this.jump = jump;
    const scrub = (event) => {
      const box = host.getBoundingClientRect();
      const share = (event.clientX - box.left - SIDE) / (box.width - 2 * SIDE);
      jump(Math.min(this.count - 1, Math.max(0, Math.floor(share * this.count))));
    };
    host.addEventListener("pointerdown", (event) => {
      host.setPointerCapture(event.pointerId);
      scrub(event);
    });
    host.addEventListener("pointermove", (event) => { if (host.hasPointerCapture(event.pointerId)) scrub(event); });
  }

  // Draws an episode; `total` is the reward up to and including each move.
  draw(moves) {
    this.moves = moves;
    this.count = moves.length;
    this.width = Math.max(200, this.host.clientWidth);
    let total = 0;
    this.totals = moves.map((move) => (total += move.reward || 0));
    this.values = moves.map((move) => planValue(move.plans[this.planner]));
    const apart = moves.map((move) => disagree(move));
    const lanes = [this.rewards(), this.planValues(), this.surprises()];
    const marks = apart.some(Boolean) ? [this.disagreements(apart)] : [];
    const height = lanes.length * (LANE + GAP) + marks.length * GAP + 22;
    const band = Math.min(26, Math.max(2, this.step()));
    const bands = moves.map((move, place) => move.mistake && svg("rect", {
      class: "band", x: this.x(place) - band / 2, width: band, y: 0, height: height - 16,
    }));
    const axis = this.axis(height);
    // The cursor leaves the labels free: a piece in every lane, and the number of the move below.
    const pieces = lanes.map((_, place) => svg("line", { class: "cursor", y1: place * (LANE + GAP) + GAP - 3, y2: (place + 1) * (LANE + GAP) }));
    this.tag = svg("text", { class: "tag", y: height - 3, "text-anchor": "middle" });
    this.knob = svg("rect", { class: "knob", y: height - 15, height: 16, rx: 8 });
    this.cursor = svg("g", {}, pieces, this.knob, this.tag);
    const drawn = svg("svg", { height, viewBox: `0 0 ${this.width} ${height}`, "aria-hidden": "true" }, bands,
      lanes.map((lane, place) => svg("g", { transform: `translate(0 ${place * (LANE + GAP)})` }, lane)),
      marks.map((mark) => svg("g", { transform: `translate(0 ${lanes.length * (LANE + GAP)})` }, mark)), axis, this.cursor);
    this.host.replaceChildren(drawn);
  }

  step() { return (this.width - 2 * SIDE) / this.count; }
  x(place) { return SIDE + (place + 0.5) * this.step(); }

  // The label of a lane, and a place for the present number.
  label(name, kind) {
    const number = svg("text", { x: this.width - SIDE, y: 13, "text-anchor": "end", class: `now ${kind}` });
    return [svg("text", { x: SIDE, y: 13, class: "soft" }, name), number];
  }

  scale(numbers) {
    const known = numbers.filter((number) => number !== null);
    const low = Math.min(0, ...known), high = Math.max(0, ...known);
    const spread = high - low || 1;
    return (number) => GAP + LANE - 4 - ((number - low) / spread) * (LANE - 8);
  }

  rewards() {
    const y = this.scale(this.totals);
    let path = `M${SIDE} ${y(0)}`;
    this.totals.forEach((total, place) => { path += `H${this.x(place)}V${y(total)}`; });
    path += `H${this.width - SIDE}`;
    return [this.label("reward so far", "of-reward"), svg("line", { class: "base", x1: SIDE, x2: this.width - SIDE, y1: y(0), y2: y(0) }),
      svg("path", { class: "area", d: `${path}V${y(0)}Z` }), svg("path", { class: "reward", d: path })];
  }

  planValues() {
    const y = this.scale(this.values);
    let path = "", pen = "M";
    this.values.forEach((value, place) => {
      if (value === null) { pen = "M"; return; }
      path += `${pen}${this.x(place)} ${y(value)}`;
      pen = "L";
    });
    const few = this.count <= 80 || this.values.filter((value) => value !== null).length < 3;
    const dots = few ? this.values.map((value, place) => value !== null && svg("circle", { class: "dot", cx: this.x(place), cy: y(value), r: 2.4 })) : [];
    return [this.label("value of the plan", "of-value"), svg("line", { class: "base", x1: SIDE, x2: this.width - SIDE, y1: y(0), y2: y(0) }),
      svg("path", { class: "value", d: path || "M0 0" }), dots];
  }

  surprises() {
    const y = this.scale(this.moves.map((move) => move.surprise));
    const wide = Math.max(1.5, Math.min(14, this.step() * 0.7));
    const bars = this.moves.map((move, place) => move.surprise > 0 && svg("rect", {
      class: move.mistake ? "mistake" : "surprise", x: this.x(place) - wide / 2, width: wide,
      y: y(move.surprise), height: y(0) - y(move.surprise),
    }));
    const marks = this.moves.map((move, place) => move.mistake && svg("path", { class: "mistake", d: `M${this.x(place) - 4} ${y(0) + 9}h8l-4 -7z` }));
    const long = this.trace.surprise === "bits" ? "surprise, in bits" : "surprise: real against believed";
    const name = this.width < 500 ? "surprise" : long;
    return [this.label(name, "of-surprise"), svg("line", { class: "base", x1: SIDE, x2: this.width - SIDE, y1: y(0), y2: y(0) }), bars, marks];
  }

  disagreements(apart) {
    const marks = apart.map((one, place) => one && svg("path", { class: "apart", d: `M${this.x(place)} 17l4 4l-4 4l-4 -4z` }));
    return [svg("text", { x: SIDE, y: 13, class: "soft" }, "planners disagree"), svg("g", { transform: "translate(0 -1)" }, marks)];
  }

  axis(height) {
    const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((one) => one * this.step() >= 34) || 2000;
    const ticks = [];
    for (let place = 0; place < this.count; place += 1) {
      if ((place + 1) % every && place) continue;
      if (place === 0 && every > 1 && every * this.step() < 60 && this.count > every) continue;
      ticks.push(svg("text", { class: "soft", x: this.x(place), y: height - 2, "text-anchor": "middle" }, String(place + 1)));
    }
    return ticks;
  }

  show(place) {
    const move = this.moves[place];
    this.cursor.setAttribute("transform", `translate(${this.x(place)} 0)`);
    this.tag.textContent = String(place + 1);
    const wide = 14 + 7 * this.tag.textContent.length, shift = Math.min(0, this.width - this.x(place) - wide / 2) + Math.max(0, wide / 2 - this.x(place));
    this.knob.setAttribute("width", wide);
    this.knob.setAttribute("x", shift - wide / 2);
    this.tag.setAttribute("x", shift);
    const set = (name, text) => { this.host.querySelector(`.of-${name}`).textContent = text; };
    const paid = move.reward ? ` (${signed(move.reward)})` : "";
    set("reward", `${words(this.totals[place])}${paid}`);
    set("value", words(this.values[place]));
    set("surprise", move.surprise === null ? "not observed" : `${words(move.surprise)}${move.mistake ? ": the model was wrong" : ""}`);
    const host = this.host;
    host.setAttribute("aria-valuemin", 1);
    host.setAttribute("aria-valuemax", this.count);
    host.setAttribute("aria-valuenow", place + 1);
    host.setAttribute("aria-valuetext", `move ${place + 1} of ${this.count}: ${move.action}${move.mistake ? ", the model was wrong" : ""}`);
  }
}

const planValue = (plan) => (plan ? plan.values[plan.action] : null);
function disagree(move) {
  const chosen = move.plans.filter(Boolean).map((plan) => plan.action);
  return chosen.some((action) => action !== chosen[0]);
}
