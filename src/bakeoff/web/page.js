// Texts of models, users and comparisons become text nodes; nothing here makes HTML of a string.
const $ = id => document.getElementById(id);
const VERBS = {
  fill: ["Fill masks", "Put [MASK] where a token is missing.", "The [MASK] of the city is in the north."],
  predict: ["Predict", "A text for a fine-tuned model to judge.", "A text to judge."],
  generate: ["Write", "A text to go on with, or one to rewrite.", "The history of the city"],
  score: ["Score", "How probable a model finds the text.", "The city lies at the river."],
};
let token = "", models = [], limits = {}, running = null, textsOf = {};

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const headers = () => ({"Content-Type": "application/json", ...(token && {Authorization: `Bearer ${token}`})});

async function ask(path, body, signal) {
  let response;
  try {
    response = await fetch(path, {method: body ? "POST" : "GET", headers: headers(), body: body && JSON.stringify(body), signal});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer; is it still running?");
  }
  if (response.ok) return response;
  const problem = new Error((await response.json().catch(() => ({}))).error || `The server answered ${response.status}.`);
  problem.status = response.status;
  throw problem;
}

function complain(text) { $("problem").textContent = text; $("problem").hidden = !text; }

async function begin() {
  let about;
  try {
    about = await (await ask("/models")).json();
  } catch (error) {
    complain(error.status === 401 && !token ? "" : error.message);
    if (error.status === 401) { $("token-form").hidden = false; $("token").focus(); }
    return;
  }
  complain("");
  $("token-form").hidden = true;
  ({models, limits} = about);
  const able = Object.keys(VERBS).filter(verb => models.some(model => model.verbs.includes(verb)));
  if (!able.length) return complain("These models have nothing to show here; the API gives their vectors.");
  for (const verb of able) {
    const input = element("input", {type: "radio", name: "verb", value: verb});
    input.addEventListener("change", choose);
    $("verbs").append(element("label", {}, input, VERBS[verb][0]));
  }
  $("verbs").querySelector("input").checked = true;
  $("tokens").max = limits.tokens;
  $("text").maxLength = limits.characters;
  $("ask").hidden = false;
  choose();
  if (about.comparison) showComparison().catch(error => complain(error.message));
}

const verbNow = () => document.querySelector("[name=verb]:checked").value;

function choose() {
  const verb = verbNow();
  const able = models.filter(model => model.verbs.includes(verb));
  // Who can write reads forwards, and fills a mask at the end alone: it is not what is offered first for the others.
  const filling = able.filter(model => !model.verbs.includes("generate"));
  const offered = verb === "fill" && filling.length ? filling : able;
  const before = [$("first").value, $("second").value];
  const kept = name => offered.some(model => model.name === name);
  $("first").replaceChildren(...able.map(option));
  $("second").replaceChildren(element("option", {value: ""}, "none"), ...able.map(option));
  const first = kept(before[0]) ? before[0] : offered[0].name;
  const other = offered.find(model => model.name !== first)?.name || "";
  $("first").value = first;
  $("second").value = kept(before[1]) && before[1] !== first ? before[1] : other;
  $("hint").textContent = VERBS[verb][1];
  textsOf[textsOf.shown] = $("text").value;
  textsOf.shown = verb;
  $("text").value = textsOf[verb] ?? (verb === "fill" && !filling.length ? "The city lies at the [MASK]" : VERBS[verb][2]);
  $("settings").hidden = verb !== "generate";
  $("settings").disabled = verb !== "generate"; // hidden fields shall not be checked
  $("pair-row").hidden = verb !== "predict" && verb !== "score";
  $("stop").hidden = verb !== "generate";
}
const option = model => element("option", {value: model.name}, `${model.name} (${model.recipe})`);

async function run(event) {
  event.preventDefault();
  stop();
  const verb = verbNow();
  const chosen = [...new Set([$("first").value, $("second").value])].filter(Boolean);
  running = new AbortController();
  const {signal} = running;
  $("stop").disabled = false;
  $("results").hidden = false;
  $("results").replaceChildren();
  const work = chosen.map(async name => {
    const model = models.find(each => each.name === name);
    const place = element("div", {"aria-live": "polite", "aria-busy": "true"}, element("p", {class: "note"}, "…"));
    const heading = element("h2", {}, name, " ", element("small", {}, model.recipe));
    $("results").append(element("article", {class: "result", "aria-label": name}, heading, place));
    try {
      await show[verb](model, place, signal);
    } catch (error) {
      if (error.name !== "AbortError") place.append(element("p", {class: "problem", role: "alert"}, error.message));
      else place.append(element("p", {class: "note"}, "Stopped."));
      place.querySelector(".note")?.textContent === "…" && place.querySelector(".note").remove();
    }
    place.setAttribute("aria-busy", "false");
  });
  await Promise.all(work);
  if (running?.signal === signal) { running = null; $("stop").disabled = true; }
}
function stop() { running?.abort(); running = null; $("stop").disabled = true; }

const answer = async (verb, body, signal) => (await (await ask(`/${verb}`, body, signal)).json()).answers[0];
const percent = share => `${(100 * share).toFixed(share < 0.0995 ? 2 : 1)} %`;
const signed = number => `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(3)}`;
const pairs = () => $("pair").value ? {pairs: [$("pair").value]} : {};

function table(head, rows) {
  const top = element("tr", {}, ...head.map((name, i) => element("th", {scope: "col", ...(i ? {} : {class: "text"})}, name)));
  return element("div", {class: "scroll"}, element("table", {}, element("thead", {}, top), element("tbody", {}, ...rows)));
}

const show = {
  async fill(model, place, signal) {
    const masks = await answer("fill", {model: model.name, texts: [$("text").value], k: 5}, signal);
    place.replaceChildren(...masks.flatMap((candidates, number) => [
      element("h3", {}, masks.length > 1 ? `Mask ${number + 1}` : "Mask"),
      table(["token", "", "probability"], candidates.map(({token, probability}) => element("tr", {},
        element("th", {scope: "row"}, token || "(white space)"),
        element("td", {class: "bar"}, element("meter", {min: 0, max: 1, value: probability, "aria-hidden": "true"})),
        element("td", {}, percent(probability))))),
    ]));
  },

  async predict(model, place, signal) {
    const body = {model: model.name, texts: [$("text").value], ...pairs()};
    const found = await answer("predict", {...body, weights: model.token_weights}, signal);
    const {token_weights: weighed, ...told} = found;
    place.replaceChildren(...said(told));
    if (weighed) place.append(...weights(weighed, [$("text").value, $("pair").value]));
  },

  async score(model, place, signal) {
    const found = await answer("score", {model: model.name, texts: [$("text").value], ...pairs()}, signal);
    const {log_probability: log, tokens, unknown} = found;
    const each = !tokens ? "no tokens" : log === null ? "no number" : `${(log / tokens).toFixed(3)} a token`;
    const without = tokens && unknown === tokens ? "no number" : "impossible";
    place.replaceChildren(element("p", {class: "big"}, log === null ? without : `${log.toFixed(2)} nats`),
      element("p", {class: "note"}, `log-probability; ${each}, ${tokens} tokens, ${unknown} of them unknown`));
  },

  async generate(model, place, signal) {
    const body = {model: model.name, texts: [$("text").value], stream: true, tokens: +$("tokens").value,
      temperature: +$("temperature").value, top_p: +$("top-p").value, seed: +$("seed").value};
    const written = element("span");
    const response = await ask("/generate", body, signal);
    place.replaceChildren(element("p", {class: "written"}, element("span", {class: "given"}, $("text").value), written));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", ended = false;
    for (;;) {
      const {value, done} = await reader.read().catch(error => {
        throw error.name === "AbortError" ? error : new Error("The connection broke; the text is not complete.");
      });
      if (done) break;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const kind = /^event: (\w+)/m.exec(block)?.[1];
        const data = JSON.parse(/^data: (.*)$/m.exec(block)[1]);
        if (kind === "error") throw new Error(data.error);
        if (kind === "end") ended = true;
        else written.append(data.text);
      }
    }
    if (!ended) throw new Error("The connection broke; the text is not complete.");
    if (!written.textContent) place.append(element("p", {class: "note"}, "The model ends the text here."));
  },
};

// What a task's answer says, whatever the task.
function said(told) {
  const parts = [];
  if ("label" in told) parts.push(element("p", {class: "big"}, String(told.label)));
  if ("value" in told) parts.push(element("p", {class: "big"}, String(told.value)));
  if (Array.isArray(told.words) && Array.isArray(told.tags)) {
    parts.push(element("p", {class: "tokens"}, ...told.words.flatMap((word, i) =>
      told.tags[i] === "O" ? [`${word} `] : [element("b", {}, word), element("span", {class: "tag"}, String(told.tags[i])), " "])));
  }
  if ("answer" in told) parts.push(element("p", {class: "big"}, told.answer || "(no answer)"));
  const rest = Object.entries(told).filter(([key]) => !["label", "value", "words", "tags", "answer"].includes(key));
  const list = element("dl");
  for (const [key, value] of rest) {
    const shown = key === "probability" ? percent(value) : typeof value === "object" ? JSON.stringify(value) : String(value);
    list.append(element("dt", {}, key.replaceAll("_", " ")), element("dd", {}, shown));
  }
  return rest.length ? [...parts, list] : parts;
}

function weights({label, baseline, weights: list}, texts) {
  const largest = Math.max(1e-9, ...list.map(({weight}) => Math.abs(weight)));
  const readout = element("p", {class: "readout note", role: "status"}, "Arrow keys, or a pointer, read the tokens' weights.");
  const line = element("p", {class: "tokens", role: "group", "aria-label": `Weights of tokens for ${label}; arrow keys go through them`});
  const spans = [];
  for (const side of [0, 1]) {
    let end = 0;
    const characters = Array.from(texts[side] || ""); // offsets count characters, not UTF-16 units
    for (const {token, begin, end: until, weight} of list.filter(each => each.side === side)) {
      if (begin < end) continue;
      line.append(characters.slice(end, begin).join(""));
      const strength = Math.ceil(4 * Math.abs(weight) / largest);
      const kind = strength && Math.abs(weight) > largest / 50 ? `${weight < 0 ? "against" : "for"} of-${strength}` : "";
      const text = `${token}: ${signed(weight)}`;
      const span = element("span", {class: `token ${kind}`, tabindex: spans.length ? "-1" : "0", role: "note", "aria-label": text}, token);
      const read = () => { readout.textContent = `${text} ${weight < 0 ? "(against" : "(for"} ${label})`; };
      span.addEventListener("focus", read);
      span.addEventListener("mouseenter", read);
      spans.push(span);
      line.append(span);
      end = until;
    }
    line.append(characters.slice(end).join(""));
    if (side === 0 && texts[1]) line.append(element("br"));
  }
  line.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    const here = spans.indexOf(document.activeElement);
    if (!step || here < 0) return;
    event.preventDefault();
    const next = spans[Math.min(spans.length - 1, Math.max(0, here + step))];
    document.activeElement.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  const rows = list.map(({token, weight}) => element("tr", {}, element("th", {scope: "row"}, token), element("td", {}, signed(weight))));
  return [
    element("h3", {}, "Weight of each token"),
    element("p", {class: "note"}, `Solid line: speaks for ${label}; dashed: against it. The stronger the shade, the more. They add up to the logarithm of how many times likelier it is than without the text (${percent(baseline)}).`),
    line, readout, element("details", {}, element("summary", {}, "All weights as a table"), table(["token", "nats"], rows)),
  ];
}

async function showComparison() {
  const about = await (await ask("/comparison")).json();
  $("comparison-title").textContent = about.title;
  $("report-link").href = about.report;
  $("report").addEventListener("toggle", () => {
    if ($("report").open && !$("report").querySelector("iframe")) {
      $("report").append(element("iframe", {src: about.report, title: "Report", sandbox: "allow-scripts"}));
    }
  });
  for (const {name, examples} of about.tasks.filter(task => task.examples.length)) {
    $("examples").append(element("h3", {}, name), element("ul", {class: "examples"}, ...examples.map(example => {
      const columns = Object.entries(example).sort((a, b) => b[1].length - a[1].length);
      const others = columns.slice(1).map(([key, value]) => `${key}: ${value}`).join("  ·  ");
      const button = element("button", {type: "button"}, columns[0][1], element("small", {}, others));
      button.addEventListener("click", () => { $("text").value = columns[0][1]; $("text").focus(); });
      return element("li", {}, button);
    })));
  }
  $("examples").hidden = !$("examples").querySelector("li");
  $("comparison").hidden = false;
}

$("token-form").addEventListener("submit", event => { event.preventDefault(); token = $("token").value.trim(); begin(); });
$("ask").addEventListener("submit", run);
$("stop").addEventListener("click", stop);
document.addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target === $("text")) { event.preventDefault(); $("ask").requestSubmit(); }
  if (event.key === "Escape") stop();
});
begin();
