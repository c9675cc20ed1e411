import { readFile } from 'node:fs/promises'

import { initWasm, Resvg } from '@resvg/resvg-wasm'

import { CHART_WIDTH, FONT_FAMILY } from './chart.ts'

/** Twice as many points as it is shown with, so that it stays sharp on a dense screen. */
const DENSITY = 2

/** Draws SVG as PNG, with a font of its own: in WebAssembly there are no fonts of the system. */
export async function loadPainter(): Promise<(svg: string) => Uint8Array> {
  await initWasm(await readFile(new URL(import.meta.resolve('@resvg/resvg-wasm/index_bg.wasm'))))
  const fontBuffers = await Promise.all([
    readFile(new URL(import.meta.resolve('dejavu-fonts-ttf/ttf/DejaVuSans.ttf'))),
    readFile(new URL(import.meta.resolve('dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf'))),
  ])
  return (svg) => {
    const image = new Resvg(svg, {
      font: { fontBuffers, defaultFontFamily: FONT_FAMILY },
      fitTo: { mode: 'width', value: CHART_WIDTH * DENSITY },
    })
    return image.render().asPng()
  }
}
