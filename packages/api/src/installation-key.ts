/** What refusals call it. Whoever reads it in a refusal knows that no role of another key is enough. */
export const INSTALLATION_KEY = 'the key of the installation'
