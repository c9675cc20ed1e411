/**
 * Prints ten comments and five exported names of the product, and five test titles, chosen by a seed, for a reader who has not seen the
 * code. We rewrite what the reader misreads. Run: `npm run sample`, or `npm run sample -- 17` for the sample of seed 17 again.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { parseSync, type Comment } from 'oxc-parser'

import { testTitles } from './test-titles.ts'

const ROOT = join(import.meta.dirname, '..')
const COMMENTS = 10
const NAMES = 5
const TITLES = 5
/** The fewest words of a sampled comment. Shorter comments explain nothing that a reader could misread. */
const COMMENT_WORDS = 8
const EXPORTED = /^export (?:abstract )?(?:async )?(?:function\*?|class|interface|type|const) (\w+)/gm

interface Sample {
  readonly comments: string[]
  readonly names: string[]
}

function readSources(): Sample {
  const sample: Sample = { comments: [], names: [] }
  for (const path of globSync('{packages,modules}/*/src/**/*.ts', { cwd: ROOT }).toSorted()) {
    if (path.endsWith('.test.ts')) continue
    const source = readFileSync(join(ROOT, path), 'utf8')
    for (const [, name] of source.matchAll(EXPORTED)) sample.names.push(`${name}   (${path})`)
    for (const comment of mergeLines(parseSync(path, source).comments, source)) {
      if (comment.text.split(' ').length < COMMENT_WORDS) continue
      const [code = ''] = source.slice(comment.end).trimStart().split('\n')
      sample.comments.push(`${path}\n   ${comment.text}\n   above: ${code}`)
    }
  }
  return sample
}

/** The titles of all tests, each after the titles of its groups. */
function readTitles(): string[] {
  return globSync('{packages,modules,tests}/**/*.test.ts', { cwd: ROOT, exclude: ['**/node_modules'] })
    .toSorted()
    .flatMap((path) =>
      testTitles(path, readFileSync(join(ROOT, path), 'utf8'))
        .filter(({ isTest }) => isTest)
        .map(({ text, groups, line }) => `${[...groups, text].join(' > ')}   (${path}:${line})`),
    )
}

/** A comment of several `//` lines is one comment. */
function mergeLines(comments: readonly Comment[], source: string): { text: string; end: number }[] {
  const merged: { text: string; end: number }[] = []
  for (const { value, start, end } of comments) {
    const text = value
      .replaceAll(/^\s*\*+/gm, '')
      .replaceAll(/\s+/g, ' ')
      .trim()
    const last = merged.at(-1)
    if (last !== undefined && source.slice(last.end, start).trim() === '') {
      last.text += ` ${text}`
      last.end = end
    } else merged.push({ text, end })
  }
  return merged
}

/** Mulberry32: the same numbers from 0 to 1 for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function choose(texts: string[], count: number, random: () => number): string[] {
  return Array.from({ length: Math.min(count, texts.length) }, () =>
    texts.splice(Math.floor(random() * texts.length), 1),
  ).flat()
}

const [given] = process.argv.slice(2)
const seed = given === undefined ? Math.floor(Math.random() * 1e6) : Number(given)
if (!Number.isSafeInteger(seed)) throw new RangeError(`expected a whole number as the seed, got ${given}`)
const { comments, names } = readSources()
const titles = readTitles()
const random = randomOf(seed)
const lines = [
  `seed ${seed}: ${COMMENTS} of ${comments.length} comments, ${NAMES} of ${names.length} names, ${TITLES} of ${titles.length} test titles`,
  ...choose(comments, COMMENTS, random).map((comment, index) => `\n${index + 1}. ${comment}`),
  '',
  ...choose(names, NAMES, random).map((name, index) => `${String.fromCodePoint(97 + index)}. ${name}`),
  '',
  // Chosen last, so that a new test does not change which comments and names a seed gives.
  ...choose(titles, TITLES, random).map((title, index) => `${String.fromCodePoint(65 + index)}. ${title}`),
]
process.stdout.write(`${lines.join('\n')}\n`)
