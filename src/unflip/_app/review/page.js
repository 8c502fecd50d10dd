// The review page. Text from the table is only ever set as text, never as markup.

const byId = (id) => document.getElementById(id);
const NEAR_END = 20; // rows left in the list when more are asked for
const FILTERS = ["queue", "status", "given", "least"];
const SHOWN_BEFORE = 3, SHOWN_AFTER = 25; // rows of the queue that are listed
const DRAWN = ["count", "train"]; // goals whose rows are drawn a few at a time
const BLIND = ["sample", ...DRAWN]; // the model's opinion is hidden
const GOALS = ["suspicious", ...DRAWN];
const OTHER_ORDERS = {
  informative: "most informative first: the rows whose true label is least certain",
  sample: "random sample: rows drawn at random, which measure the label error rate",
};
const MOST_CLASSES = 30; // classes that are listed in the estimate

let about; // what does not change
let rows = []; // the queue as far as it was asked for
let asked = null; // the last row of it that the server gave
let more = false; // whether it goes on
let at = -1; // the place in it of the row that is shown
let current = null; // the row that is shown
let tally = null;
let listed = 0; // the version of the model by which the queue is in order
let busy = false;

// ---------------------------------------------------------------- requests

class Stale extends Error {}

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(`api/${path}`, options);
  } catch {
    throw new Error("the server does not answer. Start `unflip review` again.");
  }
  const answer = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (response.status === 409) throw Object.assign(new Stale(answer.error), { current: answer.current });
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

// One action at a time: a key pressed before the next row is shown must not decide it.
async function alone(work) {
  if (busy) return;
  busy = true;
  byId("card").setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    say("", error.message);
  } finally {
    busy = false;
    byId("card").setAttribute("aria-busy", "false");
  }
}

function say(good, bad = "") {
  byId("saved").textContent = good;
  byId("alarm").textContent = bad;
}

// ---------------------------------------------------------------- building elements

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name === "scope" || name === "colSpan") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const cell = (text, kind = "") =>
  text === null ? make("td", { class: `missing ${kind}` }, "missing") : make("td", { class: kind }, text);
const heading = (text, kind = "") => make("th", { scope: "col", class: kind }, text);
const rowHeading = (text) => make("th", { scope: "row" }, text);
const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;
const width = (share) => `${100 * Math.min(1, Math.max(0, share))}%`; // for styles
const label = (position) => about.classes[position];
const plural = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

function table(id, header, lines) {
  byId(id).replaceChildren(make("thead", {}, make("tr", {}, ...header)), make("tbody", {}, ...lines));
}

function bar(share) {
  const inner = make("span");
  inner.style.width = width(share);
  return make("span", { class: "bar", "aria-hidden": "true" }, inner);
}

// ---------------------------------------------------------------- the queue

function wanted() {
  const query = new URLSearchParams();
  for (const name of FILTERS) query.set(name, byId(name).value);
  query.set("words", byId("words").value);
  return query;
}

async function extend() {
  const query = wanted();
  if (asked !== null) query.set("after", asked);
  const answer = await ask(`queue?${query}`);
  asked = answer.rows.at(-1)?.row ?? asked;
  const known = new Set(rows.map((entry) => entry.row));
  rows.push(...answer.rows.filter((entry) => !known.has(entry.row)));
  more = answer.more;
  listed = answer.model;
  progress(answer.decided, answer.total);
}

// The model has learnt: what comes after the row that is shown is in another order.
async function reorder() {
  if (BLIND.includes(byId("queue").value) || tally.model.version === listed) return;
  rows.length = Math.min(rows.length, at + 1);
  asked = null;
  await extend();
}

async function restart() {
  const queue = byId("queue").value;
  for (const name of ["given", "least", "words"]) byId(name).disabled = BLIND.includes(queue);
  drawGoal();
  rows = [];
  asked = null;
  at = -1;
  await extend();
  await show(0);
}

let inQueue = { decided: 0, total: 0 };

function progress(decided, total) {
  inQueue = { decided, total };
  byId("progress").max = Math.max(total, 1);
  byId("progress").value = decided;
  const queue = byId("queue").value;
  const which = queue === "sample" ? "of the random sample"
    : DRAWN.includes(queue) ? "drawn so far" : "of this queue";
  byId("progress-text").textContent =
    `${decided.toLocaleString("en")} of ${plural(total, "row", "rows")} ${which} decided`;
}

async function show(place) {
  const near = DRAWN.includes(byId("queue").value) ? 1 : NEAR_END;
  if (place >= rows.length - near && more) await extend();
  at = Math.max(0, Math.min(place, rows.length));
  const entry = rows[at];
  for (const part of document.querySelectorAll(".of-row")) part.hidden = !entry;
  byId("empty").hidden = Boolean(entry);
  for (const id of ["keep", "change", "other", "unsure", "next"]) byId(id).disabled = !entry;
  byId("previous").disabled = at === 0;
  if (entry) {
    current = await ask(`row?row=${entry.row}&queue=${byId("queue").value}`);
    Object.assign(entry, { version: current.version, verdict: current.verdict, label: current.label });
    drawRow();
  } else {
    current = null;
    drawEnd();
  }
  drawQueue();
}

function nextPlace() {
  let place = at + 1;
  if (byId("status").value === "open") while (place < rows.length && rows[place].verdict) place += 1;
  return place;
}

// ---------------------------------------------------------------- deciding

// Decisions of this tab that can be undone; they survive a reload.
const undoable = {
  read: () => JSON.parse(sessionStorage.getItem("undo") ?? "[]"),
  write: (entries) => sessionStorage.setItem("undo", JSON.stringify(entries.slice(-1000))),
};

function told(entry) {
  if (entry.verdict === "keep") return `kept ${label(entry.label)}`;
  if (entry.verdict === "change") return `changed to ${label(entry.label)}`;
  return entry.verdict === "unsure" ? "unsure" : "open again";
}

function note(answer) {
  const entry = rows.find((each) => each.row === answer.row);
  const was = Boolean(entry?.verdict);
  if (entry) {
    Object.assign(entry, { version: answer.version, verdict: answer.verdict, label: answer.label });
    progress(inQueue.decided + Boolean(answer.verdict) - was, inQueue.total);
  }
  tally = answer.tally ?? tally;
  drawTally();
}

async function decide(verdict, chosen = null) {
  const row = current;
  if (!row) return;
  if (verdict === "change" && chosen === null) {
    byId("other").focus();
    say("", "Choose the right label first.");
    return;
  }
  say("");
  try {
    const answer = await ask("decide", {
      row: row.row, version: row.version, verdict, label: chosen, queue: byId("queue").value,
    });
    undoable.write([...undoable.read(), { row: answer.row, version: answer.version }]);
    note(answer);
    say(`Saved: row ${answer.row} ${told(answer)}.`);
  } catch (error) {
    await refused(error, "Not saved");
    return;
  }
  await reorder();
  await show(nextPlace());
}

async function undo() {
  const entries = undoable.read();
  const last = entries.pop() ?? tally.last;
  if (!last) {
    say("", "There is nothing to undo.");
    return;
  }
  try {
    const answer = await ask("undo", { row: last.row, version: last.version });
    for (const entry of entries) if (entry.row === answer.row) entry.version = answer.version;
    undoable.write(entries);
    note(answer);
    say(`Saved: row ${answer.row} is ${told(answer)}.`);
    await visit(answer.row);
  } catch (error) {
    if (error instanceof Stale) undoable.write(entries);
    await refused(error, "Not undone");
  }
}

async function refused(error, what) {
  if (!(error instanceof Stale)) throw new Error(`${what}: ${error.message}`);
  await refreshTally();
  await visit(error.current.row);
  say("", `${what}: row ${error.current.row} was decided elsewhere meanwhile: ${told(error.current)}.`);
}

// Shows a row that may have left the queue.
async function visit(row) {
  let place = rows.findIndex((entry) => entry.row === row);
  if (place < 0) {
    place = Math.max(at, 0);
    rows.splice(place, 0, { row, given: null, suggested: null, probability: null, none: null });
    const full = await ask(`row?row=${row}&queue=${byId("queue").value}`);
    Object.assign(rows[place], {
      id: full.id, given: full.given, suggested: full.suggested, probability: full.probability,
      none: full.none,
    });
  }
  await show(place);
}

async function refreshTally() {
  tally = await ask("tally");
  drawTally();
}

// ---------------------------------------------------------------- drawing

function drawTally() {
  for (const verdict of ["keep", "change", "unsure"]) {
    byId(`n-${verdict}`).textContent = tally[verdict].toLocaleString("en");
  }
  byId("undo").disabled = !undoable.read().length && !tally.last;
  drawEstimate(tally.estimate);
  drawCounted(tally.counted);
  drawAgreement(tally.agreement);
  drawGoal();
}

function moreRows(counted) {
  const points = `± ${(100 * about.half_width).toFixed(0)} points`;
  // not the interval that is valid at any time, which is wider
  return counted.more
    ? `check about ${counted.more.toLocaleString("en")} more rows for ${points}` : `the interval is within ${points}`;
}

const between = ({ low, high }) => `${(100 * low).toFixed(1)} to ${percent(high, 1)} wrong`;

function drawGoal() {
  const queue = byId("queue").value;
  const line = about.goals[queue] ?? OTHER_ORDERS[queue];
  const counting = BLIND.includes(queue) && tally
    ? `; ${tally.counted.n_rows ? `${between(tally.counted)} so far, ` : ""}${moreRows(tally.counted)}` : "";
  byId("goal-text").textContent = `${line}${counting}${BLIND.includes(queue) ? "" : learnt()}.`;
}

function learnt() {
  if (!tally) return "";
  const { n_answers: n, trouble } = tally.model;
  return (n ? `; P(wrong) updated with ${plural(n, "answer", "answers")}` : "")
    + (trouble ? `; updating it failed (${trouble})` : "");
}

function drawAgreement(found) {
  byId("agreement").hidden = !found;
  if (!found) return;
  const alpha = found.alpha === null ? "not known yet" : found.alpha.toFixed(2);
  byId("agreement-text").textContent =
    `${found.checkers.join(", ")}: ${plural(found.n_rows, "row", "rows")} labelled by two or more, ` +
    `${found.n_disputed} differently. Krippendorff’s alpha: ${alpha} (1: full agreement, 0: chance).`;
  const named = ([name, position]) => `${name}: ${position === null ? "unsure" : label(position)}`;
  byId("disputed").replaceChildren(...found.disputed.map(({ row, answers }) => {
    // other people's answers are shown only after one's own
    const told = !about.checker || answers.some(([name]) => name === about.checker);
    const button = make("button", { type: "button" },
      told ? `Row ${row}: ${answers.map(named).join(", ")}` : `Row ${row}`);
    button.addEventListener("click", () => alone(() => visit(row)));
    return make("li", {}, button);
  }));
}

function drawCounted(counted) {
  byId("counted-value").textContent = counted.n_rows === 0 ? "Not estimated yet" : between(counted);
  byId("counted-interval").textContent = counted.n_rows === 0 ? ""
    : `(${percent(about.level)} interval, valid at any time), estimate ${counted.value === null ? "–" : percent(counted.value, 1)}`;
  const unsure = counted.n_unsure ? `, ${counted.n_unsure} of them unsure or skipped` : "";
  const always = counted.more_always > counted.more
    ? ` This holds for a number of rows fixed in advance; about ${counted.more_always.toLocaleString("en")} more rows make the interval above as narrow.` : "";
  const goal = moreRows(counted);
  byId("counted-more").textContent = counted.n_rows === 0
    ? `Choose “count errors”: ${goal}.`
    : `From ${plural(counted.n_rows, "drawn row", "drawn rows")}${unsure}. ${goal[0].toUpperCase()}${goal.slice(1)}.${always}`;
}

function drawRow() {
  byId("row-title").textContent = `Row ${current.row}${current.id === null ? "" : ` · ${current.id}`}`;
  byId("decided").textContent = current.verdict ? `Decided: ${told(current)}` : "";
  byId("decided").className = `${current.verdict}-said`;
  byId("given-label").textContent = label(current.given);
  byId("head-label").textContent = `label: ${label(current.given)}`; // on a phone, beside the row
  const blind = current.suggested === null;
  const noClass = !blind && current.none >= 0.5;
  const differs = !blind && (noClass || current.suggested !== current.given);
  byId("suggested-label").textContent = blind ? "hidden" : noClass ? "none of these" : label(current.suggested);
  byId("suggestion").classList.toggle("differs", differs);
  byId("chance").textContent = blind ? "hidden" : percent(current.probability, 1);
  byId("chance-bar").style.width = width(current.probability ?? 0);
  byId("chance-bar").parentElement.hidden = blind;
  drawContent();
  drawChoice();
  drawFeatures();
  drawSimilar();
  table("values", [heading("feature"), heading("value")],
    current.values.map(([name, value]) => make("tr", {}, rowHeading(name), cell(value))));
  if (current.n_more_values) {
    byId("values").tBodies[0].append(make("tr", {}, rowHeading("…"), cell(`and ${current.n_more_values} more`)));
  }
}

function drawEnd() {
  const open = inQueue.total - inQueue.decided;
  const state = inQueue.total === 0 ? "No row matches."
    : open === 0 ? "All its rows are decided."
      : `${plural(open, "row is", "rows are")} still open: go back, or reload the page.`;
  byId("empty-text").textContent = `${state} Choose another order or filter, or export.`;
}

function drawContent() {
  byId("pictures").replaceChildren(...current.pictures.map(picture));
  byId("texts").replaceChildren(...current.texts.map(({ name, parts }) => make("div", {},
    current.texts.length > 1 ? make("h3", {}, name) : null,
    parts.length ? make("p", { class: "sentence" }, ...parts.map(([text, mark]) =>
      (mark ? make("mark", { class: mark > 0 ? "for" : "against" }, text) : document.createTextNode(text))))
      : make("p", { class: "missing" }, "missing"))));
  byId("legend").hidden = !current.texts.some(({ parts }) => parts.some(([, mark]) => mark));
  byId("cells").replaceChildren(...current.cells.map(({ name, value, unusual }) =>
    make("div", { class: unusual ? "unusual" : "" }, make("dt", {}, name),
      make("dd", { class: value === null ? "missing" : "" }, value ?? "missing",
        unusual ? make("span", {}, " unusual") : null))));
  byId("content").scrollTop = 0;
}

function picture({ column, name, value }) {
  if (value === null) return make("p", { class: "missing" }, `${name}: missing`);
  const path = `api/image?row=${current.row}&column=${column}`;
  const image = make("img", { src: path, alt: `${name} ${value}` });
  image.addEventListener("error", async () => {
    const answer = await fetch(path).then((response) => response.json()).catch(() => ({}));
    image.replaceWith(make("p", {}, `${name} ${value} is not shown: ${answer.error ?? "it is damaged"}.`));
  });
  return image;
}

function drawChoice() {
  const order = about.classes.map((_, position) => position).filter((position) => position !== current.given);
  if (current.truth) order.sort((a, b) => current.truth[b] - current.truth[a]);
  const options = order.map((position) => {
    const chance = current.truth && about.classes.length > 2 ? ` (${percent(current.truth[position])})` : "";
    return make("option", { value: position }, label(position) + chance);
  });
  if (current.other === null) options.unshift(make("option", { value: "" }, "choose …"));
  byId("other").replaceChildren(...options);
  byId("other").value = current.other ?? "";
}

function drawFeatures() {
  const classes = [current.given, ...(current.other === null ? [] : [current.other])];
  const header = [
    heading("feature"), heading("this row"),
    ...classes.map((position) => heading(`typical of ${label(position)}`)), heading("difference"),
  ];
  const largest = Math.max(4, ...current.features.map((feature) => Math.abs(feature.score)));
  const lines = current.features.map((feature) => {
    const category = feature.share.length > 0;
    const far = category
      ? `in ${percent(feature.share[0], 1)} of ${label(current.given)}`
      : `${feature.score > 0 ? "+" : "−"}${Math.abs(feature.score).toFixed(1)} sd`;
    return make("tr", {}, rowHeading(feature.name), cell(feature.value),
      ...feature.typical.map((value) => cell(value)),
      make("td", {}, make("span", { class: "off" }, make("span", {}, far), bar(Math.abs(feature.score) / largest))));
  });
  byId("features-part").hidden = !lines.length && !current.cells.length;
  if (!lines.length) lines.push(make("tr", {}, make("td", { colSpan: header.length }, "none: this row is typical of its class")));
  table("features", header, lines);
}

function drawSimilar() {
  byId("similar-part").hidden = !current.similar.length;
  const names = current.features.slice(0, 4).map((feature) => feature.name);
  const header = [heading("row"), heading("label"), heading("decided"), ...names.map((name) => heading(name))];
  const lines = current.similar.map((near) => make("tr", {},
    rowHeading(near.id === null ? `${near.row}` : `${near.row} · ${near.id}`),
    cell(label(near.given), near.given === current.given ? "same" : "another"),
    make("td", {}, near.verdict ? told(near) : "–"),
    ...names.map((name) => cell(near.values[name]))));
  table("similar", header, lines);
}

function drawQueue() {
  const from = Math.max(0, at - SHOWN_BEFORE);
  byId("rows").replaceChildren(...rows.slice(from, at + SHOWN_AFTER).map((entry, k) => {
    const place = from + k;
    const turn = entry.suggested === null || entry.suggested === entry.given
      ? label(entry.given) : `${label(entry.given)} → ${label(entry.suggested)}`;
    const end = entry.verdict ? told(entry) : entry.probability === null ? "" : percent(entry.probability);
    const button = make("button", { type: "button" },
      make("span", {}, `${entry.row}`), make("span", { class: "what" }, turn),
      make("span", { class: entry.verdict ? `${entry.verdict}-said` : "" }, end));
    if (place === at) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => alone(() => show(place)));
    return make("li", {}, button);
  }));
}

function band(figure) {
  const parts = [];
  if (figure.sample !== null) {
    const between = make("span", { class: "between" });
    between.style.left = width(figure.low);
    between.style.width = width(figure.high - figure.low);
    const mark = make("span", { class: "at" });
    mark.style.left = width(figure.sample);
    parts.push(between, mark);
  }
  const model = make("span", { class: "model" });
  model.style.left = width(figure.model);
  return make("span", { class: "band", "aria-hidden": "true" }, ...parts, model);
}

function drawEstimate(estimate) {
  const done = estimate.n_rows >= about.sample_size;
  const unsure = estimate.n_unsure ? `, ${estimate.n_unsure} of them unsure or skipped` : "";
  byId("estimate-text").textContent = estimate.n_rows === 0
    ? `Choose “random sample” and review its ${plural(about.sample_size, "row", "rows")} to check the model.`
    : `${done ? "The whole sample" : "So far"}: ${estimate.n_rows} of ${plural(about.sample_size, "random row", "random rows")}${unsure}.`;
  const started = estimate.n_rows > 0;
  const line = (name, figure) => {
    const sample = figure.sample === null ? "–" : percent(figure.sample, 1);
    const interval = started ? `${(100 * figure.low).toFixed(1)}–${percent(figure.high, 1)}` : "–";
    return make("tr", {}, make("th", { scope: "row" }, name, band(figure)),
      cell(sample, "number"), cell(interval, "number"), cell(percent(figure.model, 1), "number"));
  };
  const lines = (figures, name) => [
    ...figures.slice(0, MOST_CLASSES).map((figure, position) => line(`${name} ${label(position)}`, figure)),
    ...(figures.length > MOST_CLASSES ? [group(`and ${figures.length - MOST_CLASSES} more classes`)] : []),
  ];
  const group = (name) => make("tr", { class: "group" }, make("th", { scope: "colgroup", colSpan: 4 }, name));
  table("estimate",
    [heading("share"), heading("sample", "number"), heading(percent(about.level), "number"), heading("model", "number")],
    [
      group("Label wrong"),
      line("any label", estimate.wrong),
      ...lines(estimate.wrong_by_label, "labelled"),
      group("Class mislabelled (noise rate)"),
      ...lines(estimate.rates, "truly"),
    ]);
}

// ---------------------------------------------------------------- listening

function chosenLabel() {
  const value = byId("other").value;
  return value === "" ? null : Number(value);
}

const commands = {
  k: () => decide("keep"),
  c: () => decide("change", chosenLabel()),
  u: () => decide("unsure"),
  z: undo,
  g: nextGoal,
  n: () => show(at + 1),
  p: () => show(at - 1),
};

function keepFilters() {
  sessionStorage.setItem("filters", JSON.stringify(FILTERS.map((name) => byId(name).value)));
}

async function nextGoal() {
  byId("queue").value = GOALS[(GOALS.indexOf(byId("queue").value) + 1) % GOALS.length];
  keepFilters();
  say("");
  await restart();
}

function pressed(event) {
  const field = event.target.closest("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (field && event.key === "Escape") {
    if (field.id === "words" && field.value) {
      event.preventDefault();
      field.value = "";
      field.dispatchEvent(new Event("input"));
    }
    byId("card").focus();
    return;
  }
  if (event.target.id === "other" && event.key === "Enter") {
    event.preventDefault();
    alone(commands.c);
    return;
  }
  // a key that is held down must not decide row after row
  if ((field && field.type !== "checkbox") || event.repeat || !byId("keys").checked) return;
  const key = event.key.toLowerCase();
  if (key === "/") {
    event.preventDefault();
    byId("more-filters").open = true;
    byId("words").focus();
  } else if (commands[key]) {
    alone(commands[key]);
  } else if (/^[1-9]$/.test(key) && Number(key) <= about.classes.length && current) {
    const position = Number(key) - 1;
    alone(() => (position === current.given ? decide("keep") : decide("change", position)));
  }
}

async function writeExport() {
  const answer = await ask("export", {});
  byId("exported").textContent =
    `Written: ${answer.files.join(", ")} in ${answer.folder}. ` +
    `${plural(answer.changed, "label", "labels")} changed, ${answer.kept} kept, ${answer.unsure} unsure.`;
}

function listen() {
  document.addEventListener("keydown", pressed);
  const buttons = { keep: "k", change: "c", unsure: "u", undo: "z", next: "n", previous: "p" };
  for (const [id, key] of Object.entries(buttons)) {
    byId(id).addEventListener("click", () => alone(commands[key]));
  }
  byId("notes-read").addEventListener("click", () => { byId("notes").hidden = true; });
  byId("export").addEventListener("click", () => alone(writeExport));
  for (const id of FILTERS) {
    byId(id).addEventListener("change", () => {
      keepFilters();
      alone(restart);
    });
  }
  let pause;
  const search = () => (busy ? later() : alone(restart));
  const later = () => {
    clearTimeout(pause);
    pause = setTimeout(search, 250);
  };
  byId("words").addEventListener("input", later);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  // another tab may have decided in the meantime
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) alone(async () => { await refreshTally(); if (current) await show(at); });
  });
}

async function start() {
  about = await ask("about");
  document.title = about.title;
  byId("title").textContent = about.title;
  byId("about").textContent =
    `${plural(about.n_rows, "row", "rows")}, ${plural(about.n_features, "feature", "features")}. ` +
    about.verdict.map((sentence) => `${sentence} `).join("") +
    (about.checker ? `Checked by ${about.checker}. ` : "") +
    `Decisions are stored in ${about.decisions}.`;
  byId("notes-text").replaceChildren(...about.notes.map((note) => make("p", {}, note)));
  byId("notes").hidden = !about.notes.length;
  about.classes.forEach((name, position) => byId("given").append(make("option", { value: position }, name)));
  const kept = JSON.parse(sessionStorage.getItem("filters") ?? "[]");
  byId("queue").value = about.queue;
  FILTERS.forEach((name, k) => { if (kept[k]) byId(name).value = kept[k]; });
  byId("more-filters").open = matchMedia("(min-width: 40rem)").matches;
  listen();
  await refreshTally();
  await restart();
}

alone(start);
