import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

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
]

/** A code from a catalogue that is not in this repository: a letter, a dash and a number. ISO 8601 has `R-1/…`, which is none. */
const UNDEFINED_ID: Rule = { pattern: /\b[A-Z]-\d{1,2}\b(?!\/)/, sayInstead: 'the rule itself' }

const INVARIANTS = 'docs/guarantees.md'
/** An invariant as code and tests cite it. */
const INVARIANT_ID = /\bI[1-9]\d?\b/g

const SOURCES = [
  '*.md',
  '{packages,tests,docs,deploy,bench,examples,scripts}/**/*.{ts,tsx,js,json,md,sql,sh,yaml,yml,service}',
  'deploy/**/Dockerfile',
]
/** Dependencies, what runs leave behind, and files that hold the words on purpose. */
const EXCLUDED = ['**/node_modules', '**/tmp', '**/package-lock.json', 'tests/house/plain-words*.ts']
/** A migration that was released is never edited, so the names in it stay, and the dumped schema repeats them. */
const FROZEN_SQL = /\/migrations\/\d{4}_[^/]*\.sql$|\/schema\.sql$/

/**
 * Finds metaphors used as names and ids that the repository does not define. Returns one line per fault: `file:line: "found", say …`.
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
      ...readFileSync(join(root, path), 'utf8')
        .split('\n')
        .flatMap((line, index) => {
          const text = path === 'CHANGELOG.md' ? withoutQuotedNames(line) : line
          return [...faultsIn(text, path), ...undefinedInvariants(text, invariants)].map(
            (fault) => `${path}:${index + 1}: ${fault}`,
          )
        }),
    ])
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
