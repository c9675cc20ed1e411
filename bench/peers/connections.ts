/** To Postgres, of a peer that can be told how many: as many as there are clients that create. */
export const CONNECTIONS = 20
