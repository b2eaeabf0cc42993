/** Numbers of the protocol: operations, special request numbers, watch modes. */

export const OPCODE = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getAcl: 6,
  setAcl: 7,
  getChildren: 8,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  reconfig: 16,
  removeWatches: 18,
  createContainer: 19,
  createTtl: 21,
  multiRead: 22,
  auth: 100,
  sasl: 102,
  getEphemerals: 103,
  getAllChildrenNumber: 104,
  setWatches2: 105,
  addWatch: 106,
  whoAmI: 107,
  closeSession: -11,
  error: -1,
} as const

/**
 * Fixed request numbers. Their requests are answered in request order too, except `auth`, whose answer overtakes answers
 * of earlier requests.
 */
export const XID = { watchEvent: -1, ping: -2, auth: -4, setWatches: -8 } as const

/**
 * Flags of a create. Container and TTL need operations of their own; other operations create other znodes from them.
 */
export const CREATE_FLAG = {
  persistent: 0,
  ephemeral: 1,
  persistentSequential: 2,
  ephemeralSequential: 3,
  container: 4,
  ttl: 5,
  ttlSequential: 6,
} as const

export const WATCH_MODE = { persistent: 0, recursive: 1 } as const

/** Kinds for `removeWatches`; 3.8 knows no finer ones. `children` and `data` remove half of a persistent watch only. */
export const WATCH_KIND = { children: 1, data: 2, any: 3 } as const
