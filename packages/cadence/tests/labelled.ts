/** Inputs with a title each, for `test.each` and `%s`: the whole input, cut short where it is monstrous. */
export function labelled<Input>(inputs: readonly Input[]): [label: string, input: Input][] {
  return inputs.map((input) => {
    const label = JSON.stringify(input)
    return [label.length > 160 ? `${label.slice(0, 160)}…` : label, input]
  })
}
