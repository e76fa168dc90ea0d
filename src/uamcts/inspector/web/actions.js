// The actions of a plan: visits, value, U and what is kept, with the words of `explain`.
function actionsPart(trace, plan) {
  if (!plan) return html("p", { class: "soft" }, "no plan here: it moves at random, or plans only where it acts itself");
  const names = plan.labels.length ? plan.labels : trace.actions;
  const most = Math.max(1, ...plan.visits);
  const order = plan.visits.map((_, action) => action);
  if (order.length > 12) order.sort((a, b) => (b === plan.action) - (a === plan.action) || plan.visits[b] - plan.visits[a]);
  const body = order.slice(0, 40).map((action) => {
    const chosen = action === plan.action, gone = !plan.exists[action], doubtful = plan.doubt[action] > 0;
    const kind = [chosen && "chosen", gone && "deleted", doubtful && "doubtful"].filter(Boolean).join(" ");
    return html("tr", { class: kind || null },
      html("td", {}, html("span", { class: "name" }, names[action] || String(action)), chosen ? html("span", { "aria-hidden": "true" }, " ★") : null,
        plan.notes[action] && html("span", { class: "note" }, plan.notes[action])),
      html("td", { class: "number" }, String(plan.visits[action]), html("span", { class: "meter", "aria-hidden": "true" }, bar(plan.visits[action] / most))),
      html("td", { class: "number" }, gone ? "–" : words(plan.values[action])),
      html("td", { class: "number doubt" }, words(plan.doubt[action])),
      html("td", { class: "number" }, gone ? "–" : `${Math.round(100 * plan.keep[action])}%`));
  });
  const heads = [["action"], ["visits", true], ["value", true], ["U", true], ["kept", true]];
  const titles = { U: "how wrong the simulator is about the step", kept: "the share of what lies beyond the step that counts" };
  const head = html("tr", {}, heads.map(([name, number]) => html("th", { scope: "col", class: number ? "number" : null, title: titles[name] }, name)));
  const [first, ...rest] = plan.words.split("\n");
  return html("div", {}, html("p", { class: "words" }, first),
    html("div", { class: "scroll" }, html("table", { class: "actions" }, html("thead", {}, head), html("tbody", {}, body))),
    order.length > 40 ? html("p", { class: "soft small" }, `+${order.length - 40} more`) : null,
    rest.length ? html("p", { class: "words more" }, rest.join("\n")) : null);
}

function bar(share) {
  const inner = html("i");
  inner.style.width = `${Math.round(100 * share)}%`;
  return inner;
}

function actionsCard(trace, move, episode, number) {
  const planner = trace.planners[number], plan = move.plans[number], alone = trace.planners.length === 1;
  const names = plan && (plan.labels.length ? plan.labels : trace.actions);
  const mine = number === episode.planner, overruled = mine && plan && move.action !== names[plan.action];
  const role = alone || !plan ? null : html("span", { class: "soft small" }, mine ? "plays this episode" : "what it would do here");
  return html("section", { class: `card why${mine && !alone ? " mine" : ""}`, "aria-label": `actions of ${planner.name}` },
    html("div", { class: "top" }, html("h2", {}, alone ? "Why this action" : planner.name), role),
    overruled ? html("p", { class: "flag warm" }, `what was done instead: ${move.action}`) : null, actionsPart(trace, plan));
}
