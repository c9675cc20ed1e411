import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { RESULTS_VERSION, type Results } from '../results.ts'
import type { WorkName } from '../work.ts'
import { drawChart } from './chart.ts'
import { chartsOf } from './charts.ts'
import { resultsPage } from './page.ts'
import { loadPainter } from './png.ts'

const JSON_FILE = 'results.json'

/** Writes `results.json`, `RESULTS.md` and `charts/*.png` into a folder, which is made if it is not there. */
export async function writeReport(folder: string, results: Results): Promise<void> {
  const charts = join(folder, 'charts')
  await mkdir(charts, { recursive: true })
  // Charts of works that were not done this time would be taken for this run's.
  const old = (await readdir(charts)).filter((file) => file.endsWith('.png'))
  await Promise.all(old.map((file) => rm(join(charts, file))))
  await writeFile(join(folder, JSON_FILE), `${JSON.stringify(results, undefined, 2)}\n`)
  await writeFile(join(folder, 'RESULTS.md'), resultsPage(results))
  const paint = await loadPainter()
  for (const { name } of results.works) {
    // The works of a results file are those of its version of the bench.
    for (const { file, chart } of chartsOf(name as WorkName, results.figures)) {
      await writeFile(join(charts, file), paint(drawChart(chart)))
    }
  }
}

/** @throws Error if there is none, or one of another version */
export async function readResults(folder: string): Promise<Results> {
  const path = join(folder, JSON_FILE)
  if (!existsSync(path)) throw new Error(`expected ${path}, got no such file: run the bench first, or name its --out`)
  const results = JSON.parse(await readFile(path, 'utf8')) as { version: number }
  if (results.version !== RESULTS_VERSION) {
    throw new Error(`expected version ${RESULTS_VERSION} of ${path}, got ${results.version}: run the bench again`)
  }
  // Written by `writeReport`; the version says that it has this shape.
  return results as unknown as Results
}

/** What stands in the way of a figure, if somebody wrote it down. */
export function readNote(notes: string, id: string): string | undefined {
  const path = join(notes, `${id}.md`)
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined
}
