// Vectors in two dimensions: their principal components, of what they have in common.

const STEPS = 500;
const EXACT = 1e-10;

/**
 * Places in the plane that shows most of how texts differ.
 * @param {number[][]} likeness the products of all vectors with each other (of units: cosines).
 * @returns {{places: [number, number][], share: number}} and how much of the variance the two axes have.
 */
export function mapOf(likeness) {
  const centred = centredOf(likeness);
  const sum = centred.reduce((all, row, number) => all + row[number], 0);
  const axes = [];
  for (let axis = 0; axis < 2; axis += 1) axes.push(axisOf(centred, axes));
  const places = likeness.map((_, number) => axes.map(({ along, spread }) => along[number] * Math.sqrt(spread)));
  return { places, share: sum > EXACT ? axes.reduce((all, { spread }) => all + spread, 0) / sum : 1 };
}

/** The products of vectors from which their mean is taken. */
function centredOf(products) {
  const means = products.map((row) => row.reduce((sum, one) => sum + one, 0) / row.length);
  const mean = means.reduce((sum, one) => sum + one, 0) / means.length;
  return products.map((row, one) => row.map((product, other) => product - means[one] - means[other] + mean));
}

/** The direction of the largest spread besides known ones: multiplied until it turns no more. */
function axisOf(products, known) {
  let along = unit(products.map((_, number) => Math.sin(number + 1)), known).vector;
  let spread = 0;
  for (let step = 0; step < STEPS; step += 1) {
    const next = unit(products.map((row) => dot(row, along)), known);
    const turned = 1 - Math.abs(dot(next.vector, along));
    along = next.vector;
    spread = next.length;
    if (turned < EXACT) break;
  }
  // Whichever sign would do; the largest number is positive, so that the same texts give the same map.
  const largest = along.reduce((one, other) => (Math.abs(other) > Math.abs(one) + EXACT ? other : one), 0);
  return { along: along.map((one) => one * Math.sign(largest || 1)), spread };
}

function unit(vector, known) {
  for (const { along } of known) {
    const share = dot(vector, along);
    vector = vector.map((one, number) => one - share * along[number]);
  }
  const length = Math.hypot(...vector);
  return { vector: length > EXACT ? vector.map((one) => one / length) : vector.map(() => 0), length };
}

/** The product of two vectors. */
export function dot(one, other) {
  let sum = 0;
  for (let number = 0; number < one.length; number += 1) sum += one[number] * other[number];
  return sum;
}
