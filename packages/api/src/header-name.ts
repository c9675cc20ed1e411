/** `if-match` as people write it: `If-Match`. */
export function headerName(name: string): string {
  return name
    .split('-')
    .map((word) => (word === 'id' ? 'ID' : word.charAt(0).toUpperCase() + word.slice(1)))
    .join('-')
}
