// The picture of docs/what-a-sketch-is.md: rows on a line, their characteristic function at m
// frequencies, and what is known of the rows from these m numbers alone.
//
// What is known is drawn as the flattest density that has the sketch up to the noise of sampling:
// the one of largest entropy. Centroids are those of k-means on that density. tools/sketch_pictures.py
// computes the same for the static pictures.

(() => {
  "use strict";

  const CLUSTERS = [
    { mean: -4.2, deviation: 0.75, share: 0.45 },
    { mean: 0.8, deviation: 0.6, share: 0.3 },
    { mean: 4.6, deviation: 0.9, share: 0.25 },
  ];
  const ROWS = 1500;
  const LOW = -8;
  const HIGH = 8;
  const POINTS = 161; // of the grid that densities are computed on
  const MOST = 20; // frequencies
  const HIGHEST = 3.2; // frequency
  const NEWTON_STEPS = 40;
  const GOLDEN = (Math.sqrt(5) - 1) / 2;

  // Rows, the same on every visit.

  function randomNumbers(seed) {
    let state = seed >>> 0;
    return () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return (state + 0.5) / 4294967296;
    };
  }

  function makeRows() {
    const random = randomNumbers(7);
    return Array.from({ length: ROWS }, (_, i) => {
      let place = (i + 0.5) / ROWS;
      let k = 0;
      while (k < CLUSTERS.length - 1 && place > CLUSTERS[k].share) {
        place -= CLUSTERS[k].share;
        k += 1;
      }
      const normal = Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
      return CLUSTERS[k].mean + CLUSTERS[k].deviation * normal;
    });
  }

  // Frequencies in an order such that the first m of them are spread over all, denser near zero.
  const FREQUENCIES = Array.from({ length: MOST }, (_, j) => {
    const place = (0.12 + (j + 1) * GOLDEN) % 1;
    return 0.12 + (HIGHEST - 0.12) * place ** 1.6;
  });

  function characteristic(rows, omega) {
    let re = 0;
    let im = 0;
    for (const x of rows) {
      re += Math.cos(omega * x);
      im -= Math.sin(omega * x);
    }
    return [re / rows.length, im / rows.length];
  }

  // The density of largest entropy whose sketch is z up to the noise of sampling. Its logarithm is
  // a sum of cosines and sines with coefficients that Newton's method finds.

  function recover(z, frequencies, grid) {
    const features = [];
    const target = [];
    frequencies.forEach((omega, j) => {
      features.push(grid.map((x) => Math.cos(omega * x)), grid.map((x) => -Math.sin(omega * x)));
      target.push(z[j][0], z[j][1]);
    });
    const d = features.length;
    const noise = 0.5 / ROWS; // the variance of each number
    let state = evaluate(new Float64Array(d), features, target, noise);
    for (let step = 0; step < NEWTON_STEPS; step += 1) {
      const direction = solve(hessian(state, features, noise), state.gradient);
      let slope = 0;
      for (let i = 0; i < d; i += 1) slope += direction[i] * state.gradient[i];
      if (slope < 1e-9) break;
      let length = 1;
      let next = state;
      do {
        const moved = state.coefficients.map((value, i) => value - length * direction[i]);
        next = evaluate(moved, features, target, noise);
        length /= 2;
      } while (next.value > state.value - 0.5 * length * slope && length > 1e-6);
      state = next;
    }
    return state.p;
  }

  function evaluate(coefficients, features, target, noise) {
    const d = features.length;
    const count = features[0].length;
    const exponent = new Float64Array(count);
    for (let i = 0; i < d; i += 1) {
      for (let x = 0; x < count; x += 1) exponent[x] += coefficients[i] * features[i][x];
    }
    const largest = Math.max(...exponent);
    const p = exponent.map((value) => Math.exp(value - largest));
    const total = p.reduce((sum, value) => sum + value, 0);
    for (let x = 0; x < count; x += 1) p[x] /= total;
    let value = largest + Math.log(total);
    const mean = new Float64Array(d);
    const gradient = new Float64Array(d);
    for (let i = 0; i < d; i += 1) {
      for (let x = 0; x < count; x += 1) mean[i] += p[x] * features[i][x];
      value += (0.5 * noise * coefficients[i] - target[i]) * coefficients[i];
      gradient[i] = mean[i] - target[i] + noise * coefficients[i];
    }
    return { coefficients, p, mean, value, gradient };
  }

  function hessian(state, features, noise) {
    const d = features.length;
    const count = state.p.length;
    const H = Array.from({ length: d }, () => new Float64Array(d));
    for (let i = 0; i < d; i += 1) {
      for (let j = 0; j <= i; j += 1) {
        let sum = 0;
        for (let x = 0; x < count; x += 1) sum += state.p[x] * features[i][x] * features[j][x];
        H[i][j] = sum - state.mean[i] * state.mean[j];
        H[j][i] = H[i][j];
      }
      H[i][i] += noise;
    }
    return H;
  }

  function solve(H, right) {
    // Cholesky's factorisation; H is positive definite.
    const d = right.length;
    const L = Array.from({ length: d }, () => new Float64Array(d));
    for (let i = 0; i < d; i += 1) {
      for (let j = 0; j <= i; j += 1) {
        let sum = H[i][j];
        for (let k = 0; k < j; k += 1) sum -= L[i][k] * L[j][k];
        L[i][j] = i === j ? Math.sqrt(Math.max(sum, 1e-14)) : sum / L[j][j];
      }
    }
    const y = Float64Array.from(right);
    for (let i = 0; i < d; i += 1) {
      for (let k = 0; k < i; k += 1) y[i] -= L[i][k] * y[k];
      y[i] /= L[i][i];
    }
    for (let i = d - 1; i >= 0; i -= 1) {
      for (let k = i + 1; k < d; k += 1) y[i] -= L[k][i] * y[k];
      y[i] /= L[i][i];
    }
    return y;
  }

  // k-means in one dimension, exactly: clusters are intervals, so that dynamic programming finds
  // the best cuts of weighted points in order.

  function kMeans(points, weights, K) {
    const count = points.length;
    const sums = [0, 1, 2].map((power) => {
      const all = new Float64Array(count + 1);
      for (let i = 0; i < count; i += 1) all[i + 1] = all[i] + weights[i] * points[i] ** power;
      return all;
    });
    const between = (a, b) => sums.map((all) => all[b] - all[a]);
    const cost = (a, b) => {
      const [mass, first, second] = between(a, b);
      return mass > 1e-12 ? second - first ** 2 / mass : 0;
    };
    let best = Float64Array.from({ length: count + 1 }, (_, b) => cost(0, b));
    const cuts = [];
    for (let k = 1; k < K; k += 1) {
      const cut = new Int32Array(count + 1);
      const next = new Float64Array(count + 1).fill(Infinity);
      for (let b = 0; b <= count; b += 1) {
        for (let a = 0; a <= b; a += 1) {
          const value = best[a] + cost(a, b);
          if (value < next[b]) {
            next[b] = value;
            cut[b] = a;
          }
        }
      }
      best = next;
      cuts.push(cut);
    }
    const centroids = [];
    let end = count;
    for (let k = K - 1; k >= 0; k -= 1) {
      const begin = k > 0 ? cuts[k - 1][end] : 0;
      const [mass, first] = between(begin, end);
      if (mass > 1e-12) centroids.unshift(first / mass);
      end = begin;
    }
    return centroids;
  }

  function sse(rows, centroids) {
    let sum = 0;
    for (const x of rows) sum += Math.min(...centroids.map((c) => (x - c) ** 2));
    return sum;
  }

  // Drawing

  const WIDTH = 640;
  const UPPER = { top: 26, height: 150 };
  const LOWER = { top: 236, height: 120 };
  const LEFT = 34;
  const RIGHT = 12;

  function element(name, attributes = {}, text = "") {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  }

  function line(xs, ys) {
    return xs.map((x, i) => `${i ? "L" : "M"}${x.toFixed(1)},${ys[i].toFixed(1)}`).join("");
  }

  function scale(low, high, begin, end) {
    return (value) => begin + ((value - low) / (high - low)) * (end - begin);
  }

  function axis(svg, toX, ticks, y, title) {
    svg.append(element("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: "axis" }));
    for (const tick of ticks) {
      svg.append(element("text", { x: toX(tick), y: y + 15, "text-anchor": "middle" }, tick));
    }
    svg.append(element("text", { x: WIDTH - RIGHT, y: y + 30, "text-anchor": "end" }, title));
  }

  function start(widget) {
    const rows = makeRows();
    const grid = Array.from({ length: POINTS }, (_, i) => LOW + ((HIGH - LOW) * i) / (POINTS - 1));
    const spacing = grid[1] - grid[0];
    const z = FREQUENCIES.map((omega) => characteristic(rows, omega));
    const histogram = new Float64Array(64);
    for (const x of rows) {
      const bin = Math.floor(((x - LOW) / (HIGH - LOW)) * histogram.length);
      if (bin >= 0 && bin < histogram.length) histogram[bin] += 1;
    }
    const binWidth = (HIGH - LOW) / histogram.length;
    const sorted = Float64Array.from(rows).sort();
    const reference = sse(rows, kMeans(sorted, sorted.map(() => 1), CLUSTERS.length));

    const svg = element("svg", { viewBox: `0 0 ${WIDTH} 400`, role: "img" });
    const toX = scale(LOW, HIGH, LEFT, WIDTH - RIGHT);
    const toY = scale(0, 0.27, UPPER.top + UPPER.height, UPPER.top);
    const toOmega = scale(0, HIGHEST, LEFT, WIDTH - RIGHT);
    const toZ = scale(-1, 1, LOWER.top + LOWER.height, LOWER.top);

    svg.append(element("text", { x: LEFT, y: 16, class: "title" }, "Rows, and what the sketch knows of them"));
    histogram.forEach((count, i) => {
      const top = toY(count / ROWS / binWidth);
      svg.append(element("rect", {
        x: toX(LOW + i * binWidth) + 0.5, width: toX(binWidth) - toX(0) - 1,
        y: top, height: UPPER.top + UPPER.height - top, class: "rows",
      }));
    });
    axis(svg, toX, [-8, -4, 0, 4, 8], UPPER.top + UPPER.height, "x");
    svg.append(element("text", { x: LEFT, y: LOWER.top - 10, class: "title" },
      "The characteristic function, and the m numbers that are kept"));
    const omegas = Array.from({ length: 200 }, (_, i) => (HIGHEST * i) / 199);
    const whole = omegas.map((omega) => characteristic(rows, omega));
    for (const part of [0, 1]) {
      svg.append(element("path", {
        d: line(omegas.map(toOmega), whole.map((value) => toZ(value[part]))),
        class: part ? "sine" : "cosine",
      }));
    }
    axis(svg, toOmega, [0, 1, 2, 3], LOWER.top + LOWER.height, "frequency ω");
    svg.append(element("text", { x: LEFT - 6, y: toZ(1) + 4, "text-anchor": "end" }, "1"));
    svg.append(element("text", { x: LEFT - 6, y: toZ(0) + 4, "text-anchor": "end" }, "0"));
    const moving = element("g");
    svg.append(moving);

    const control = document.createElement("div");
    control.className = "sketch-control";
    const name = `sketch-m-${Math.random().toString(36).slice(2, 8)}`;
    control.innerHTML =
      `<label for="${name}">Frequencies m</label>` +
      `<input type="range" id="${name}" min="1" max="${MOST}" value="4" step="1">` +
      `<output for="${name}" aria-live="polite"></output>`;
    const slider = control.querySelector("input");
    const output = control.querySelector("output");

    function draw() {
      const m = Number(slider.value);
      const p = recover(z.slice(0, m), FREQUENCIES.slice(0, m), grid);
      const centroids = kMeans(grid, p, CLUSTERS.length);
      const ratio = sse(rows, centroids) / reference;
      moving.replaceChildren();
      const density = Array.from(p, (value) => toY(Math.min(value / spacing, 0.29)));
      moving.append(element("path", { d: line(grid.map(toX), density), class: "found" }));
      for (const c of centroids) {
        const x = toX(c);
        const y = UPPER.top + UPPER.height;
        moving.append(element("path", { d: `M${x},${y}l-7,14l14,0z`, class: "centroid" }));
      }
      FREQUENCIES.slice(0, m).forEach((omega, j) => {
        const x = toOmega(omega);
        moving.append(element("circle", { cx: x, cy: toZ(z[j][0]), r: 4, class: "kept" }));
        moving.append(element("circle", { cx: x, cy: toZ(z[j][1]), r: 4, class: "kept sine-dot" }));
      });
      const places = centroids.map((c) => c.toFixed(1)).join(", ");
      output.textContent =
        `m = ${m}: ${2 * m} numbers instead of ${ROWS} rows. Centroids at ${places}; ` +
        `their SSE is ${ratio.toFixed(ratio < 1.1 ? 3 : 2)} times that of k-means on the rows.`;
      svg.setAttribute("aria-label",
        `A histogram of ${ROWS} rows in three clusters, and the density recovered from ${m} ` +
        `frequencies, with centroids at ${places}. Below, the characteristic function of the rows ` +
        `with ${m} frequencies marked.`);
    }

    slider.addEventListener("input", draw);
    widget.replaceChildren(control, svg);
    const legend = document.createElement("p");
    legend.className = "sketch-legend";
    legend.innerHTML =
      '<span class="key rows"></span>rows <span class="key found"></span>recovered density ' +
      '<span class="key centroid"></span>centroids <span class="key cosine"></span>real part ' +
      '<span class="key sine"></span>imaginary part';
    widget.append(legend);
    widget.classList.add("is-live");
    draw();
  }

  const STYLE = `
    .sketch-widget.is-live { --rows: #a9b4c0; --found: #1f5f8b; --mark: #b3261e; --cos: #2b7a4b;
      --sin: #b35c00; margin: 1rem 0; max-width: 720px; }
    html[data-theme="dark"] .sketch-widget.is-live { --rows: #5b6673; --found: #7cc4f2;
      --mark: #ff8a80; --cos: #7fd6a0; --sin: #f5b26b; }
    .sketch-widget svg { width: 100%; height: auto; display: block; }
    .sketch-widget text { fill: currentColor; font-size: 13px; }
    .sketch-widget text.title { font-weight: 600; }
    .sketch-widget .axis { stroke: currentColor; stroke-width: 1; }
    .sketch-widget path { fill: none; stroke-width: 2; }
    .sketch-widget rect.rows { fill: var(--rows); }
    .sketch-widget path.found { stroke: var(--found); stroke-width: 3; }
    .sketch-widget path.centroid { fill: var(--mark); }
    .sketch-widget path.cosine { stroke: var(--cos); opacity: 0.6; }
    .sketch-widget path.sine { stroke: var(--sin); opacity: 0.6; stroke-dasharray: 5 3; }
    .sketch-widget circle.kept { fill: var(--cos); }
    .sketch-widget circle.sine-dot { fill: var(--sin); }
    .sketch-control { display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; align-items: center; }
    .sketch-control label { font-weight: 600; margin: 0; }
    .sketch-control input { flex: 1 1 12rem; }
    .sketch-control output { flex: 1 1 100%; min-height: 3em; }
    .sketch-legend { font-size: 0.9rem; }
    .sketch-legend .key { display: inline-block; width: 1em; height: 0.7em; margin: 0 0.35em 0 0.9em; }
    .sketch-legend .key.rows { background: var(--rows); margin-left: 0; }
    .sketch-legend .key.found { background: var(--found); }
    .sketch-legend .key.cosine { background: var(--cos); }
    .sketch-legend .key.centroid { background: var(--mark); }
    .sketch-legend .key.sine { background: var(--sin); }`;

  function startAll() {
    const widgets = document.querySelectorAll(".sketch-widget");
    if (!widgets.length) return;
    const style = document.createElement("style");
    style.textContent = STYLE;
    document.head.append(style);
    widgets.forEach(start);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
  else startAll();
})();
