"use strict";
// Puts the map on the page: what is where, what is said of it, and how hands, eyes and ears get at it.

const NARROW = 640, UNTOLD = 255, REACH = 12, COAST_ERROR_M = 150;
const byId = id => document.getElementById(id);
const darkMode = matchMedia("(prefers-color-scheme: dark)");

// A release: its shapes, and the words and looks of the slot that is shown.
class Release {
  constructor(facts) {
    this.facts = facts;
    this.projection = PROJECTIONS[facts.projection];
    this.shapes = new Shapes(facts, this.projection);
    this.slotStarts = starts(facts.slotSizes);
    this.shapeOfRow = summed(facts.shapeOfRow);
    this.kindOfShape = new Int32Array(this.shapes.count);
    this.labels = [];
    this.show(facts.slots.map(() => 0));
  }

  // Takes the number of the label in each slot column.
  show(choice) {
    const { slots, kindOfRow } = this.facts;
    const slot = choice.reduce((number, label, i) => number * slots[i].labels.length + label, 0);
    this.labels = choice.map((label, i) => `${slots[i].name}=${slots[i].labels[label]}`);
    this.kindOfShape.fill(-1);
    for (let row = this.slotStarts[slot]; row < this.slotStarts[slot + 1]; row++) {
      this.kindOfShape[this.shapeOfRow[row]] = kindOfRow[row];
    }
  }

  // The released shape at a place, or -1.
  at(latlng, radius) {
    const found = this.shapes.at(
      this.projection.x(latlng.lng), this.projection.y(latlng.lat), radius, shape => this.kindOfShape[shape] >= 0);
    return found.length ? found[0] : -1;
  }

  name(shape) {
    return [this.facts.names[shape], ...this.labels].join(", ");
  }

  // Metres; 0 where the shape is a cell.
  reach(shape) {
    return this.facts.reachOfKind ? this.facts.reachOfKind[this.kindOfShape[shape]] : 0;
  }

  words(shape) {
    return this.facts.words[this.kindOfShape[shape]];
  }
}

// Colours as the style sheet has them, for light or dark.
class Look {
  constructor(release, classes) {
    this.release = release;
    this.classes = classes;
    this.read();
  }

  read() {
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name).trim();
    this.fills = Array.from({ length: this.classes }, (_, i) => colour(`--c${i}`));
    this.untold = colour("--untold");
    this.coast = colour("--coast");
    this.line = colour(this.release.shapes.points ? "--ink" : "--seam");
    this.hatch = stripes(colour("--hatch"));
  }

  of(shape) {
    const kind = this.release.kindOfShape[shape];
    if (kind < 0) return null;
    const place = this.release.facts.classOfKind[kind];
    return {
      fill: place === UNTOLD ? this.untold : this.fills[place],
      hatched: this.release.facts.edgeOfKind[kind] === 1,
    };
  }
}

function stripes(colour) {
  const tile = document.createElement("canvas"), size = tile.width = tile.height = STRIPE;
  const context = tile.getContext("2d");
  context.strokeStyle = colour;
  context.beginPath();
  for (const shift of [-size, 0, size]) {
    context.moveTo(shift - 1, size + 1);
    context.lineTo(shift + size + 1, -1);
  }
  context.stroke();
  return context.createPattern(tile, "repeat");
}

// A plane whose zoom levels are such that the view fills the window at one of them.
function fitted(facts, projection, width, height) {
  const [west, south, east, north] = facts.view;
  const wide = projection.x(east) - projection.x(west), high = projection.y(south) - projection.y(north);
  const scale = Math.min((width - 24) / wide, (height - 24) / high, 2 ** 26);
  const zoom = Math.max(0, Math.floor(Math.log2(scale / 192)));
  const base = Math.max(64, Math.floor(scale / 2 ** zoom));
  const plane = facts.projection === "plate" ? L.CRS.EPSG4326 : L.CRS.EPSG3857;
  return {
    zoom, base,
    crs: L.extend({}, plane, { scale: z => base * 2 ** z, zoom: s => Math.log2(s / base) }),
    center: [projection.lat((projection.y(south) + projection.y(north)) / 2), (west + east) / 2],
    // A step of the coordinates is then half a pixel.
    nearest: Math.min(24, Math.max(zoom + 2, Math.ceil(Math.log2(180 * 10 ** facts.digits / base)))),
  };
}

function drawMap(release, look, settings) {
  const place = byId("map"), { facts, projection } = release;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const fit = fitted(facts, projection, place.clientWidth, place.clientHeight);
  const map = L.map(place, {
    crs: fit.crs, center: fit.center, zoom: fit.zoom, minZoom: Math.max(0, fit.zoom - 1), maxZoom: fit.nearest,
    wheelPxPerZoomLevel: 120, fadeAnimation: false, attributionControl: false, zoomAnimation: !still, inertia: !still,
  });
  if (settings.tiles) L.tileLayer(settings.tiles, { tileSize: fit.base, maxNativeZoom: 18, maxZoom: 24 }).addTo(map);
  const coast = coastOf(facts, projection);
  const draw = function* (context, tile, size) {
    yield* drawShapes(context, tile, size, release.shapes, look);
    if (coast && size * 2 ** tile.z < 40075016 / COAST_ERROR_M) drawLines(context, tile, size, coast, look.coast);
  };
  const cells = new Cells(draw, { tileSize: fit.base, maxZoom: 24, opacity: settings.tiles ? 0.75 : 1, keepBuffer: 1 });
  cells.on("load", () => { document.documentElement.dataset.ready = "yes"; });
  return { map, cells: cells.addTo(map) };
}

function coastOf(facts, projection) {
  if (!("coastLon" in facts)) return null;
  return new Shapes({
    digits: facts.coastDigits, rings: facts.coastRings, corners: facts.coastCorners,
    lon: facts.coastLon, lat: facts.coastLat,
  }, projection);
}

// The cell under the pointer, the finger, or the cross in the middle.
class Pointer {
  constructor(map, release) {
    this.map = map;
    this.release = release;
    this.shape = -1;
    this.marks = L.layerGroup().addTo(map);
    this.card = document.createElement("div");
    this.card.id = "card";
    this.card.hidden = true;
    this.card.append(document.createElement("p"), document.createElement("p"));
    map.getContainer().append(this.card);
    map.on("mousemove click", event => this.move(event.latlng, event.containerPoint));
    map.on("mouseout movestart", () => this.leave());
    map.on("moveend", () => this.read());
    this.listen(map.getContainer());
  }

  // The cross shows while keys move the map. A tap gives the map the focus too, and shows none.
  listen(container) {
    let keys = true;
    const remember = event => { keys = event.type === "keydown"; };
    for (const type of ["keydown", "pointerdown"]) addEventListener(type, remember, true);
    container.addEventListener("keydown", () => this.keyed(true));
    container.addEventListener("focus", () => this.keyed(keys));
    container.addEventListener("blur", () => this.keyed(false));
    container.addEventListener("pointerdown", () => this.keyed(false));
  }

  keyed(on) {
    const { classList } = this.map.getContainer();
    if (classList.contains("keyed") === on) return;
    classList.toggle("keyed", on);
    if (on) this.read();
    else this.leave();
  }

  // Says what is under the cross, if the map is moved by keys.
  read() {
    if (!this.map.getContainer().classList.contains("keyed")) return;
    this.move(this.map.getCenter(), this.map.getSize().divideBy(2));
    byId("said").textContent = this.shape < 0 ? "no cell here" : `${this.release.name(this.shape)}: ${this.release.words(this.shape)}`;
  }

  move(latlng, point) {
    const radius = REACH / this.map.options.crs.scale(this.map.getZoom());
    const shape = this.release.at(latlng.wrap(), radius);
    if (shape < 0) return this.leave();
    if (shape !== this.shape) this.mark(shape, latlng.lng);
    this.shape = shape;
    this.place(point);
  }

  again() {
    this.leave();
    this.read();
  }

  leave() {
    this.shape = -1;
    this.card.hidden = true;
    this.marks.clearLayers();
  }

  mark(shape, lng) {
    const [words, name] = this.card.children;
    words.textContent = this.release.words(shape);
    name.textContent = this.release.name(shape);
    this.marks.clearLayers();
    const rings = this.release.shapes.outline(shape, this.release.projection, lng);
    for (const [weight, className] of [[5, "halo"], [2, "mark"]]) {
      const options = { weight, className, fill: false, interactive: false };
      if (!this.release.shapes.points) this.marks.addLayer(L.polygon(rings, options));
      else this.markPoint(rings[0][0], this.release.reach(shape), options);
    }
  }

  // A point, and how far its noise reaches.
  markPoint(latlng, reach, options) {
    this.marks.addLayer(L.circleMarker(latlng, { ...options, radius: DOT + 2 }));
    if (reach) this.marks.addLayer(L.circle(latlng, { ...options, radius: reach }));
  }

  // Beside the point, inside the window.
  place(point) {
    this.card.hidden = false;
    const size = this.map.getSize(), { offsetWidth: width, offsetHeight: height } = this.card, gap = 14;
    const left = point.x + gap + width > size.x ? point.x - gap - width : point.x + gap;
    const top = point.y + gap + height > size.y ? point.y - gap - height : point.y + gap;
    this.card.style.left = `${Math.max(4, Math.min(left, size.x - width - 4))}px`;
    this.card.style.top = `${Math.max(4, top)}px`;
  }
}

// A slider for many labels, a list for few.
function slotControl(slot, place, changed) {
  const label = document.createElement("label"), name = document.createElement("span");
  name.textContent = slot.name;
  label.append(name);
  if (slot.labels.length > 8) {
    const slider = document.createElement("input"), shown = document.createElement("output");
    Object.assign(slider, { type: "range", min: 0, max: slot.labels.length - 1, value: 0 });
    const say = () => {
      shown.textContent = slot.labels[slider.value];
      slider.setAttribute("aria-valuetext", shown.textContent);
    };
    say();
    slider.addEventListener("input", () => { say(); changed(place, Number(slider.value)); });
    label.append(slider, shown);
  } else {
    const list = document.createElement("select");
    list.append(...slot.labels.map((text, i) => new Option(text, i)));
    list.addEventListener("change", () => changed(place, Number(list.value)));
    label.append(list);
  }
  return label;
}

function slotControls(release, redraw) {
  const { slots } = release.facts, choice = slots.map(() => 0), form = byId("slots");
  form.addEventListener("submit", event => event.preventDefault());
  form.hidden = !slots.length;
  form.append(...slots.map((slot, i) => slotControl(slot, i, (place, label) => {
    choice[place] = label;
    release.show(choice);
    redraw();
  })));
}

function panels() {
  const record = byId("record");
  if (innerWidth < NARROW) byId("legend").open = false;
  record.addEventListener("keydown", event => {
    if (event.key !== "Escape") return;
    record.open = false;
    record.querySelector("summary").focus();
  });
}

function trouble(text) {
  byId("trouble").textContent = text;
  byId("trouble").hidden = false;
}

async function main() {
  panels();
  const settings = JSON.parse(byId("geodp-settings").textContent);
  const facts = await unpack(byId("geodp-data").textContent);
  const release = new Release(facts), look = new Look(release, settings.classes);
  slotControls(release, () => { page.cells.repaint(); page.pointer.again(); });
  Object.assign(page, { release, look }, drawMap(release, look, settings));
  page.pointer = new Pointer(page.map, release);
  darkMode.addEventListener("change", () => { look.read(); page.cells.repaint(); });
  if (!facts.names.length) trouble("No cell of this release reached the threshold.");
}

const page = {};
main().catch(() => trouble("This browser cannot draw the map; the record can be read. A browser of 2023 or newer can."));
