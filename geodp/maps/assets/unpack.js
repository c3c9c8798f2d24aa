"use strict";
// Reads what packing.py wrote: see there for the format.

async function unpack(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const block = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(block.buffer).getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(block.subarray(4, 4 + length)));
  let at = 4 + length;
  for (const [name, width, count] of facts.sections) {
    const part = block.subarray(at, at + width * count);
    facts[name] = width === 1 ? part : signed(part, count);
    at += width * count;
  }
  return facts;
}

function signed(planes, n) {
  const numbers = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    const z = planes[i] | planes[n + i] << 8 | planes[2 * n + i] << 16 | planes[3 * n + i] << 24;
    numbers[i] = z >>> 1 ^ -(z & 1);
  }
  return numbers;
}

// Undoes differences(), modulo 2^32 as there.
function summed(differences) {
  for (let i = 1; i < differences.length; i++) differences[i] = differences[i - 1] + differences[i] | 0;
  return differences;
}

// Where each of several groups begins, and the last ends.
function starts(sizes) {
  const places = new Int32Array(sizes.length + 1);
  for (let i = 0; i < sizes.length; i++) places[i + 1] = places[i] + sizes[i];
  return places;
}
