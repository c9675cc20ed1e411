import { formatNumber } from './number.ts'

export interface Bar {
  readonly label: string
  readonly value: number
  /** The lowest and the highest value of the rounds. */
  readonly low: number
  readonly high: number
  readonly isOwn: boolean
}

/** A reference value for the bars: the limit, or the goal. */
export interface Mark {
  /** The full text, such as `the limit: 41,200 /s`. */
  readonly label: string
  readonly value: number
}

export interface Chart {
  readonly title: string
  /** What the bars show, and which direction is better. */
  readonly subtitle: string
  readonly unit: string
  readonly bars: readonly Bar[]
  readonly marks: readonly Mark[]
}

export const CHART_WIDTH = 900
export const FONT_FAMILY = 'DejaVu Sans'

const OWN = '#0b6e4f'
const OTHER = '#9aa3ad'
const INK = '#1f2933'
const FAINT = '#66717d'
const GRID = '#e4e7eb'
const MARK = '#b44c1d'

const MARGIN = 24
const BAR_HEIGHT = 22
const BAR_STEP = 34
const LABEL_SIZE = 13
/** The mean width of a letter in DejaVu Sans, as a share of the font size. */
const LETTER_WIDTH = 0.57
const BOLD_LETTER_WIDTH = 0.66
/** The space for the number at the end of the longest bar. */
const NUMBER_WIDTH = 130
const TICKS = 5

/** The positions of the ticks on the axis from 0 to `end`. */
export interface Scale {
  readonly end: number
  readonly ticks: readonly number[]
}

/** Steps of 1, 2 or 5 times a power of ten, and as few of them as reach the largest value. */
export function chooseScale(largest: number): Scale {
  if (!(largest > 0)) return { end: 1, ticks: [0, 1] }
  const power = 10 ** Math.floor(Math.log10(largest / TICKS))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((width) => width * TICKS >= largest) ?? largest
  const count = Math.ceil(largest / step - 1e-9)
  return { end: count * step, ticks: Array.from({ length: count + 1 }, (_, n) => n * step) }
}

/** Draws horizontal bars in the given order, as SVG. */
export function drawChart(chart: Chart): string {
  const scale = chooseScale(
    Math.max(0, ...chart.bars.map(({ high }) => high), ...chart.marks.map(({ value }) => value)),
  )
  const left = MARGIN + Math.max(60, ...chart.bars.map(labelWidth)) + 12
  const width = CHART_WIDTH - left - NUMBER_WIDTH
  const top = chart.marks.length > 0 ? 96 : 78
  const bottom = top + chart.bars.length * BAR_STEP
  const height = bottom + 44
  const x = (value: number): number => left + (value / scale.end) * width
  const axis = { x, top, bottom, unit: chart.unit }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${CHART_WIDTH}" height="${height}"`,
    ` viewBox="0 0 ${CHART_WIDTH} ${height}" font-family="${FONT_FAMILY}">`,
    `<rect width="${CHART_WIDTH}" height="${height}" fill="#ffffff"/>`,
    text(chart.title, { x: MARGIN, y: 34, size: 18, fill: INK, isBold: true }),
    text(chart.subtitle, { x: MARGIN, y: 56, size: 13, fill: FAINT }),
    ...scale.ticks.map((tick) => drawTick(tick, axis)),
    ...chart.bars.map((bar, row) => drawBar(bar, { ...axis, left, y: barTop(top, row) })),
    ...chart.marks.map((mark) => drawMark(mark, axis)),
    ...chart.bars.map((bar, row) => drawNumber(bar, { ...axis, left, y: barTop(top, row) })),
    '</svg>',
  ].join('\n')
}

interface Axis {
  readonly x: (value: number) => number
  readonly top: number
  readonly bottom: number
  readonly unit: string
}

function drawTick(tick: number, { x, top, bottom }: Axis): string {
  const at = round(x(tick))
  const label = text(formatNumber(tick), { x: at, y: bottom + 20, size: 11, fill: FAINT, anchor: 'middle' })
  return `<line x1="${at}" x2="${at}" y1="${top}" y2="${bottom}" stroke="${GRID}"/>${label}`
}

function barTop(top: number, row: number): number {
  return top + row * BAR_STEP + (BAR_STEP - BAR_HEIGHT) / 2
}

function drawBar(bar: Bar, { x, left, y }: Axis & { left: number; y: number }): string {
  const middle = y + BAR_HEIGHT / 2
  const width = round(Math.max(1, x(bar.value) - left))
  const fill = bar.isOwn ? OWN : OTHER
  const [from, to] = [round(x(bar.low)), round(x(bar.high))]
  return [
    text(bar.label, { x: left - 10, y: middle + 4.5, size: LABEL_SIZE, fill: INK, anchor: 'end', isBold: bar.isOwn }),
    `<rect x="${round(left)}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="2" fill="${fill}"/>`,
    ...(bar.high > bar.low
      ? [`<line x1="${from}" x2="${to}" y1="${middle}" y2="${middle}" stroke="${INK}" stroke-width="1.5"/>`]
      : []),
  ].join('')
}

/** Draws the number on top of everything, with a white edge, because a mark may pass behind it. */
function drawNumber(bar: Bar, { x, left, y, unit }: Axis & { left: number; y: number }): string {
  const number = `${formatNumber(bar.value)} ${unit}`.trim()
  const place = { x: Math.max(x(bar.high), left + 1) + 8, y: y + BAR_HEIGHT / 2 + 4.5 }
  return text(number, { ...place, size: LABEL_SIZE, fill: INK, isBold: bar.isOwn, hasEdge: true })
}

function drawMark({ value, label }: Mark, { x, top, bottom }: Axis): string {
  const at = round(x(value))
  const isRight = at > CHART_WIDTH - MARGIN - (label.length * 12 * LETTER_WIDTH) / 2
  const dashes = `stroke="${MARK}" stroke-width="2" stroke-dasharray="6 4"`
  const line = `<line x1="${at}" x2="${at}" y1="${top - 4}" y2="${bottom}" ${dashes}/>`
  const place = isRight ? { x: CHART_WIDTH - MARGIN, anchor: 'end' as const } : { x: at, anchor: 'middle' as const }
  return line + text(label, { ...place, y: top - 10, size: 12, fill: MARK })
}

function text(
  words: string,
  p: {
    x: number
    y: number
    size: number
    fill: string
    anchor?: 'end' | 'middle'
    isBold?: boolean
    hasEdge?: boolean
  },
): string {
  const anchor = p.anchor === undefined ? '' : ` text-anchor="${p.anchor}"`
  const weight = p.isBold === true ? ' font-weight="bold"' : ''
  const edge = p.hasEdge === true ? ' stroke="#ffffff" stroke-width="4" paint-order="stroke"' : ''
  const place = `x="${round(p.x)}" y="${round(p.y)}" font-size="${p.size}" fill="${p.fill}"`
  return `<text ${place}${anchor}${weight}${edge}>${escape(words)}</text>`
}

function labelWidth({ label, isOwn }: Bar): number {
  return label.length * LABEL_SIZE * (isOwn ? BOLD_LETTER_WIDTH : LETTER_WIDTH)
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function escape(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
