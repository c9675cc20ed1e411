import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { testTitles } from '../../scripts/test-titles.ts'

interface Rule {
  readonly pattern: RegExp
  readonly sayInstead: string
  /** Where the rule holds: elsewhere the word has its usual meaning. @default everywhere */
  readonly under?: string
}

/** Names that a stranger cannot guess, each with the word of the field that replaces it. */
const METAPHORS: readonly Rule[] = [
  { pattern: /rights[- ]?desk/i, sayInstead: 'permission checker' },
  { pattern: /create[- ]?desk/i, sayInstead: 'create batcher' },
  { pattern: /(?:slot|spec)[- ]?book|known[- ]?inputs/i, sayInstead: 'cadence cache' },
  { pattern: /(?<![a-z])stray/i, sayInstead: 'commit in doubt, unknown run, or unexpected error' },
  { pattern: /census/i, sayInstead: 'gauges' },
  { pattern: /grant[- ]?warner/i, sayInstead: 'grant expiry warnings' },
  { pattern: /(?<![a-z])keeper/i, sayInstead: 'pipeline loop' },
  { pattern: /agenda[- ]?watch/i, sayInstead: 'due watch' },
  { pattern: /(?<![a-z])[Ss]ettler(?![a-z])/, sayInstead: 'settle queue' },
  { pattern: /lane[- ]?place/i, sayInstead: 'lane position' },
  { pattern: /vain[- ]?retry/i, sayInstead: 'drop pointless retry' },
  { pattern: /\b(?:buried|forgiven)/i, sayInstead: 'removed workers, failures reset' },
  { pattern: /\bbreath/i, sayInstead: 'batch delay' },
  { pattern: /\bTold\b|\btellSettled\b/, sayInstead: 'emit, event' },
  { pattern: /\bisPlain\b/, sayInstead: 'needs no lock', under: 'packages/core/' },
  { pattern: /(?<![a-z])walled/i, sayInstead: 'scoped' },
  { pattern: /\bwall_in\b|\bforget_live\b|\bnote_life\b/, sayInstead: 'enable row security, live schedules' },
  { pattern: /\brequire_(?:room|places?)\b/, sayInstead: 'check quotas' },
  { pattern: /\bnobodys(?=[A-Z])|\b[a-z]+Nobody/, sayInstead: 'unknown, unused, disconnected' },
]

/** Words that make the reader of a title guess the actor. */
const TITLE_RIDDLE = /\b(?:nobody|whoever|(?:is|are|was|were|be|been) told)\b/i

/** A code from a catalogue that is not in this repository: a letter, a dash and a number. ISO 8601 has `R-1/…`, which is none. */
const UNDEFINED_ID: Rule = { pattern: /\b[A-Z]-\d{1,2}\b(?!\/)/, sayInstead: 'the rule itself' }

const INVARIANTS = 'docs/guarantees.md'
/** An invariant as code and tests cite it. */
const INVARIANT_ID = /\bI[1-9]\d?\b/g

const SOURCES = [
  '*.md',
  '{packages,modules,tests,docs,deploy,bench,examples,scripts}/**/*.{ts,tsx,js,json,md,sql,sh,yaml,yml,service}',
  'deploy/**/Dockerfile',
]
/** Dependencies, what runs leave behind, and files that hold the words on purpose. */
const EXCLUDED = ['**/node_modules', '**/tmp', '**/package-lock.json', 'tests/house/plain-words*.ts']
/** A migration that was released is never edited, so the names in it stay, and the dumped schema repeats them. */
const FROZEN_SQL = /\/migrations\/\d{4}_[^/]*\.sql$|\/schema\.sql$/

/**
 * Finds metaphors used as names, ids that the repository does not define, and test titles without a named actor. Returns one line per
 * fault: `file:line: "found", say …`.
 *
 * @param under only files whose path starts with one of these; all files if there are none
 */
export function findUnclearWords(root: string, under: readonly string[] = []): string[] {
  const invariants = definedInvariants(root)
  return globSync(SOURCES, { cwd: root, exclude: EXCLUDED })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => !FROZEN_SQL.test(path))
    .filter((path) => under.length === 0 || under.some((prefix) => path.startsWith(prefix)))
    .toSorted()
    .flatMap((path) => [
      ...faultsIn(path, path).map((fault) => `${path}: the file's name: ${fault}`),
      ...faultsOfLines(path, readFileSync(join(root, path), 'utf8'), invariants),
      ...riddlesInTitles(path, readFileSync(join(root, path), 'utf8')),
    ])
}

function faultsOfLines(path: string, source: string, invariants: ReadonlySet<string>): string[] {
  return source.split('\n').flatMap((line, index) => {
    const text = path === 'CHANGELOG.md' ? withoutQuotedNames(line) : line
    return [...faultsIn(text, path), ...undefinedInvariants(text, invariants)].map(
      (fault) => `${path}:${index + 1}: ${fault}`,
    )
  })
}

/** Reads the titles from the syntax tree, so a line break within a title, or between it and its call, does not hide a word. */
function riddlesInTitles(path: string, source: string): string[] {
  if (!/\.test\.tsx?$/.test(path)) return []
  return testTitles(path, source).flatMap(({ text, line }) => {
    const [found] = TITLE_RIDDLE.exec(text) ?? []
    return found === undefined ? [] : [`${path}:${line}: the title: "${found}", say which actor does what`]
  })
}

function faultsIn(text: string, path: string): string[] {
  return [...METAPHORS, UNDEFINED_ID].flatMap(({ pattern, sayInstead, under = '' }) => {
    if (!path.startsWith(under)) return []
    const [found] = pattern.exec(text) ?? []
    return found === undefined ? [] : [`"${found}", say ${sayInstead}`]
  })
}

function undefinedInvariants(text: string, defined: ReadonlySet<string>): string[] {
  return [...text.matchAll(INVARIANT_ID)]
    .filter(([id]) => !defined.has(id))
    .map(([id]) => `"${id}", say an invariant of ${INVARIANTS}`)
}

/** The changelog quotes a name that is gone, so that readers can search for it. */
function withoutQuotedNames(line: string): string {
  return line.replaceAll(/`[^`]*`/g, '')
}

function definedInvariants(root: string): ReadonlySet<string> {
  const rows = readFileSync(join(root, INVARIANTS), 'utf8').matchAll(/^\| (I\d+) /gm)
  return new Set([...rows].map(([, id = '']) => id))
}
