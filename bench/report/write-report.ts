import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { initWasm, Resvg } from '@resvg/resvg-wasm'

import { RESULTS_VERSION, type Results } from '../results.ts'
import type { WorkName } from '../work.ts'
import { CHART_WIDTH, drawChart, FONT_FAMILY } from './chart.ts'
import { chartsOf } from './charts.ts'
import { resultsPage } from './page.ts'

const JSON_FILE = 'results.json'
/** The charts have twice the pixels of their size on the page, so that they are sharp on a dense screen. */
const DENSITY = 2

/** Writes `results.json`, `RESULTS.md` and `charts/*.png` into a folder, which it creates if needed. */
export async function writeReport(folder: string, results: Results): Promise<void> {
  const charts = join(folder, 'charts')
  await mkdir(charts, { recursive: true })
  // Old charts of works that did not run this time would look like charts of this run.
  const old = (await readdir(charts)).filter((file) => file.endsWith('.png'))
  await Promise.all(old.map((file) => rm(join(charts, file))))
  await writeFile(join(folder, JSON_FILE), `${JSON.stringify(results, undefined, 2)}\n`)
  await writeFile(join(folder, 'RESULTS.md'), resultsPage(results))
  const paint = await loadPainter()
  for (const { name } of results.works) {
    // The works of a results file belong to its version of the bench, which is this one.
    for (const { file, chart } of chartsOf(name as WorkName, results.figures)) {
      await writeFile(join(charts, file), paint(drawChart(chart)))
    }
  }
}

/** @throws Error if there is no results file, or one of another version */
export async function readResults(folder: string): Promise<Results> {
  const path = join(folder, JSON_FILE)
  if (!existsSync(path)) throw new Error(`expected ${path}, got no such file: run the bench first, or name its --out`)
  const results = JSON.parse(await readFile(path, 'utf8')) as { version: number }
  if (results.version !== RESULTS_VERSION) {
    throw new Error(`expected version ${RESULTS_VERSION} of ${path}, got ${results.version}: run the bench again`)
  }
  // `writeReport` wrote the file, and its version shows that it has this shape.
  return results as unknown as Results
}

/** The note that explains why a goal was missed, if there is one. */
export function readNote(notes: string, id: string): string | undefined {
  const path = join(notes, `${id}.md`)
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined
}

/** Returns a function that renders SVG as PNG. The font comes from npm, because WebAssembly cannot use the system's fonts. */
async function loadPainter(): Promise<(svg: string) => Uint8Array> {
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
