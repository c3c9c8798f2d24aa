"use strict";
// Draws cells into tiles, a few milliseconds at a time, so that the map moves while it is being drawn.

const SLICE = 6, TINY = 3, LARGE = 12, DOT = 5, STRIPE = 6;

const queue = [];
let waiting = false;

function enqueue(job) {
  queue.push(job);
  if (!waiting) requestAnimationFrame(work);
  waiting = true;
}

function work() {
  const end = performance.now() + SLICE;
  while (queue.length && performance.now() < end) {
    const job = queue[0];
    if (!job.dropped && !step(job)) continue;
    queue.shift();
    if (!job.dropped) job.finish();
  }
  waiting = queue.length > 0;
  if (waiting) requestAnimationFrame(work);
}

// Takes a job one step on, pixels included: a canvas would otherwise put them off, and then do all at once.
function step(job) {
  const { done } = job.steps.next();
  job.context.getImageData(0, 0, 1, 1);
  return done;
}

// draw(context, tile, size) is a generator that stops now and then.
const Cells = L.GridLayer.extend({
  initialize(draw, options) {
    this.draw = draw;
    this.tiles = new Map();
    L.GridLayer.prototype.initialize.call(this, options);
    this.on("tileunload", event => {
      this.tiles.get(event.tile).job.dropped = true;
      this.tiles.delete(event.tile);
    });
  },

  createTile(coords, done) {
    const tile = this.blank();
    this.tiles.set(tile, { coords, job: null, done: () => done(null, tile) });
    this.paint(tile);
    return tile;
  },

  blank() {
    const tile = document.createElement("canvas"), size = this.getTileSize().x;
    tile.width = tile.height = Math.round(size * Math.min(devicePixelRatio || 1, 2));
    return tile;
  },

  // A tile is shown when it is complete, and stays as it was until then: nothing flickers.
  paint(tile) {
    const state = this.tiles.get(tile), size = this.getTileSize().x;
    const copy = this.blank(), context = copy.getContext("2d", { willReadFrequently: true });
    context.scale(copy.width / size, copy.width / size);
    const finish = () => {
      const onto = tile.getContext("2d");
      onto.clearRect(0, 0, tile.width, tile.height);
      onto.drawImage(copy, 0, 0);
      state.done();
      state.done = () => {};
    };
    if (state.job) state.job.dropped = true;
    state.job = { steps: this.draw(context, state.coords, size), context, finish, dropped: false };
    enqueue(state.job);
  },

  repaint() {
    for (const tile of this.tiles.keys()) this.paint(tile);
  },
});

// The window of a tile in the units of the shapes, and how many pixels a unit has.
function windowOf({ x, y, z }, size) {
  const parts = 2 ** z;
  return { left: x / parts, top: y / parts, side: 1 / parts, scale: size * parts, size };
}

function* drawShapes(context, tile, size, shapes, look) {
  const view = windowOf(tile, size), fills = new Map(), hatched = [];
  for (const shape of shapes.near(view, shapes.points ? DOT + 2 : 1)) {
    const seen = look.of(shape);
    if (!seen) continue;
    if (!fills.has(seen.fill)) fills.set(seen.fill, []);
    fills.get(seen.fill).push(shape);
    if (seen.hatched) hatched.push(shape);
  }
  yield;
  for (const [fill, members] of fills) yield* drawAll(context, members, shapes, view, fill, look.line);
  // Stripes go on from tile to tile.
  look.hatch.setTransform(new DOMMatrix().translate(-(tile.x * size % STRIPE), -(tile.y * size % STRIPE)));
  yield* drawAll(context, hatched, shapes, view, look.hatch, null);
}

function* drawAll(context, members, shapes, view, fill, line) {
  context.fillStyle = fill;
  context.lineWidth = 0.7;
  let count = 0;
  for (const shape of members) {
    if (++count % 128 === 0) yield;
    if (shapes.points) drawPoint(context, shape, shapes, view);
    else if (drawTiny(context, shape, shapes, view)) continue;
    else {
      context.beginPath();
      shapes.trace(context, shape, view, true);
    }
    context.fill("evenodd");
    if (line) {
      // Small neighbours of one colour run together, without seams; large ones have a line between them.
      context.strokeStyle = shapes.points || isLarge(shape, shapes, view) ? line : fill;
      context.stroke();
    }
  }
}

function isLarge(shape, { boxes }, { scale }) {
  return (boxes[4 * shape + 2] - boxes[4 * shape]) * scale > LARGE;
}

function drawPoint(context, shape, shapes, { left, top, scale }) {
  const [x, y] = [(shapes.boxes[4 * shape] - left) * scale, (shapes.boxes[4 * shape + 1] - top) * scale];
  context.beginPath();
  context.arc(x, y, DOT, 0, 2 * Math.PI);
}

// A cell of a few pixels is its box, in whole pixels.
function drawTiny(context, shape, { boxes }, { left, top, scale }) {
  const west = (boxes[4 * shape] - left) * scale, east = (boxes[4 * shape + 2] - left) * scale;
  const north = (boxes[4 * shape + 1] - top) * scale, south = (boxes[4 * shape + 3] - top) * scale;
  if (east - west >= TINY || south - north >= TINY) return false;
  const x = Math.floor(west), y = Math.floor(north);
  context.fillRect(x, y, Math.ceil(east) - x, Math.ceil(south) - y);
  return true;
}

function drawLines(context, tile, size, lines, colour) {
  const view = windowOf(tile, size);
  context.strokeStyle = colour;
  context.lineWidth = 0.8;
  context.beginPath();
  for (const line of lines.near(view, 2)) lines.trace(context, line, view, false);
  context.stroke();
}
