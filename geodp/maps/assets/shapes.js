"use strict";
// Outlines on the plane of the map. A unit is a tile of zoom 0, so that x * 2 ** zoom counts tiles.

const PROJECTIONS = {
  // Web Mercator, one tile wide: it ends at 85 degrees.
  mercator: {
    x: lon => (lon + 180) / 360,
    y: lat => 0.5 - Math.log(Math.tan(Math.PI / 4 + lat * Math.PI / 360)) / (2 * Math.PI),
    lon: x => 360 * x - 180,
    lat: y => Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180 / Math.PI,
  },
  // Degrees as they are, two tiles wide and one high: it holds the poles.
  plate: { x: lon => lon / 180 + 1, y: lat => 0.5 - lat / 180, lon: x => 180 * (x - 1), lat: y => 180 * (0.5 - y) },
};

class Shapes {
  constructor(facts, projection) {
    const unit = 10 ** -facts.digits, lon = summed(facts.lon), lat = summed(facts.lat);
    this.points = facts.points;
    this.count = facts.rings.length;
    this.rings = starts(facts.rings);
    this.corners = starts(facts.corners);
    this.x = new Float64Array(lon.length);
    this.y = new Float64Array(lon.length);
    for (let i = 0; i < lon.length; i++) {
      this.x[i] = projection.x(lon[i] * unit);
      this.y[i] = projection.y(Math.max(-90, Math.min(90, lat[i] * unit)));
    }
    this.boxes = new Float64Array(4 * this.count);
    this.index = this.count ? new Flatbush(this.count) : null;
    for (let shape = 0; shape < this.count; shape++) this.measure(shape);
    if (this.index) this.index.finish();
  }

  measure(shape) {
    let west = Infinity, north = Infinity, east = -Infinity, south = -Infinity;
    const { x, y, boxes } = this, end = this.corners[this.rings[shape + 1]];
    for (let i = this.corners[this.rings[shape]]; i < end; i++) {
      if (x[i] < west) west = x[i];
      if (x[i] > east) east = x[i];
      if (y[i] < north) north = y[i];
      if (y[i] > south) south = y[i];
    }
    boxes[4 * shape] = west;
    boxes[4 * shape + 1] = north;
    boxes[4 * shape + 2] = east;
    boxes[4 * shape + 3] = south;
    this.index.add(west, north, east, south);
  }

  // All shapes whose boxes meet a window and some pixels around it.
  near({ left, top, side, scale }, pixels) {
    const margin = pixels / scale;
    return this.index ? this.index.search(left - margin, top - margin, left + side + margin, top + side + margin) : [];
  }

  // The shapes at a place; points within a radius, the nearest first.
  at(x, y, radius, wanted) {
    if (!this.index) return [];
    if (this.points) return this.index.neighbors(x, y, 1, radius, wanted);
    return this.index.search(x, y, x, y, shape => wanted(shape) && this.holds(shape, x, y));
  }

  holds(shape, x, y) {
    const { x: xs, y: ys } = this;
    let inside = false;
    for (let ring = this.rings[shape]; ring < this.rings[shape + 1]; ring++) {
      const first = this.corners[ring], end = this.corners[ring + 1];
      for (let i = first, j = end - 1; i < end; j = i++) {
        const crosses = ys[i] > y !== ys[j] > y && x < (xs[j] - xs[i]) * (y - ys[i]) / (ys[j] - ys[i]) + xs[i];
        if (crosses) inside = !inside;
      }
    }
    return inside;
  }

  // The rings of a shape in degrees, each where it is nearest to a longitude.
  outline(shape, projection, lng) {
    const rings = [];
    for (let ring = this.rings[shape]; ring < this.rings[shape + 1]; ring++) {
      const first = this.corners[ring], end = this.corners[ring + 1];
      const turn = 360 * Math.round((lng - projection.lon((this.x[first] + this.x[first + (end - first >> 1)]) / 2)) / 360);
      const corners = [];
      for (let i = first; i < end; i++) corners.push([projection.lat(this.y[i]), projection.lon(this.x[i]) + turn]);
      rings.push(corners);
    }
    return rings;
  }

  // Adds a shape to a path, in pixels of a window.
  trace(path, shape, view, closed) {
    for (let ring = this.rings[shape]; ring < this.rings[shape + 1]; ring++) {
      const first = this.corners[ring], end = this.corners[ring + 1];
      if (end - first <= 16) this.plain(path, first, end, view);
      else this.clipped(path, first, end, view);
      if (closed) path.closePath();
    }
  }

  plain(path, first, end, { left, top, scale }) {
    const { x, y } = this;
    path.moveTo((x[first] - left) * scale, (y[first] - top) * scale);
    for (let i = first + 1; i < end; i++) path.lineTo((x[i] - left) * scale, (y[i] - top) * scale);
  }

  // A corner between two others beyond the same side of the window changes nothing inside it, and one within half a
  // pixel of the last is not seen.
  clipped(path, first, end, { left, top, scale, size }) {
    const margin = 8, far = size + margin;
    const beyond = (x, y) => (x < -margin ? 1 : x > far ? 2 : 0) | (y < -margin ? 4 : y > far ? 8 : 0);
    let x = (this.x[first] - left) * scale, y = (this.y[first] - top) * scale, side = beyond(x, y), before = side;
    path.moveTo(x, y);
    for (let i = first + 1; i < end; i++) {
      const nextX = (this.x[i] - left) * scale, nextY = (this.y[i] - top) * scale;
      if (Math.abs(nextX - x) < 0.4 && Math.abs(nextY - y) < 0.4) continue;
      const next = beyond(nextX, nextY);
      if (!(before & side & next)) {
        path.lineTo(x, y);
        before = side;
      }
      x = nextX;
      y = nextY;
      side = next;
    }
    path.lineTo(x, y);
  }
}
