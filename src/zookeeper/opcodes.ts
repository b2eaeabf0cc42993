/** The numbers of the protocol that both sides know: operations, special request numbers, watch modes. */

export const OPCODE = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  removeWatches: 18,
  setWatches2: 105,
  addWatch: 106,
  closeSession: -11,
  error: -1,
} as const

/** Requests that carry a fixed number instead of the next one; both are answered in request order all the same. */
export const XID = { watchEvent: -1, ping: -2, setWatches: -8 } as const

/** Added up in a create's flags. */
export const CREATE_FLAG = { ephemeral: 1, sequential: 2 } as const

export const WATCH_MODE = { persistent: 0, recursive: 1 } as const

/** `removeWatches` of every kind: the finer kinds of 3.8 take half of a persistent watch away and leave the rest. */
export const ANY_WATCH = 3
