/**
 * A number in [0, 1) that is always the same for the same text and evenly distributed over different texts. Spread and jitter
 * use it, so it must never change between releases, nor differ between workers.
 *
 * FNV-1a and not a digest: nothing here is secret, a caller gains nothing by choosing an id, and the pipeline computes it for
 * every slot.
 */
export function stableFraction(text: string): number {
  let hash = 0x81_1c_9d_c5
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01_00_01_93)
  // FNV alone leaves texts that differ in their last character (`…:1`, `…:2`) a few 256ths apart.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85_eb_ca_6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
