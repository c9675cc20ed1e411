/** Pairs each input with a title for `test.each` and `%s`: its JSON, shortened if it is long. */
export function labelled<Input>(inputs: readonly Input[]): [label: string, input: Input][] {
  return inputs.map((input) => {
    const label = JSON.stringify(input)
    return [label.length > 160 ? `${label.slice(0, 160)}…` : label, input]
  })
}
