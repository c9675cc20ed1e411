/** What can be written as JSON and read back the same. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }
