/** Logbooks that tell of each transition once it is on record: how far a flow is, for who runs it in this process. */
import type { FlowLog, Persistence, Transition } from '../persistence/index.ts'

export type Told = (transition: Transition) => void

/** Passes everything on. Closing it leaves the logbooks open. */
export function watched(persistence: Persistence, told: Told): Persistence {
  const close = async () => undefined
  return {
    uri: persistence.uri,
    encrypts: persistence.encrypts === true,
    open: close,
    close,
    createBook: (book) => persistence.createBook(book),
    updateBook: (uuid, change) => persistence.updateBook(uuid, change),
    createFlow: (request) => persistence.createFlow(request),
    acquire: async (request) => watchedLog(await persistence.acquire(request), told),
    getBook: (uuid) => persistence.getBook(uuid),
    listBooks: (query) => persistence.listBooks(query),
    destroyBook: (uuid, options) => persistence.destroyBook(uuid, options),
    [Symbol.asyncDispose]: close,
  }
}

function watchedLog(log: FlowLog, told: Told): FlowLog {
  return {
    flow: log.flow,
    write: async (transition) => {
      await log.write(transition)
      told(transition)
    },
    close: () => log.close(),
    [Symbol.asyncDispose]: () => log[Symbol.asyncDispose](),
  }
}
