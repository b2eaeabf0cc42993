/** Logbooks that emit each transition after it is recorded: the progress of a flow that this process runs. */
import type { FlowLog, Persistence, Transition } from '../../persistence/index.ts'

export type TransitionListener = (transition: Transition) => void

/** Wraps a persistence and passes everything on. Closing the wrapper leaves the persistence open. */
export function watchPersistence(persistence: Persistence, listener: TransitionListener): Persistence {
  const close = async () => undefined
  return {
    uri: persistence.uri,
    encrypts: persistence.encrypts === true,
    open: close,
    close,
    createBook: (book) => persistence.createBook(book),
    updateBook: (uuid, change) => persistence.updateBook(uuid, change),
    createFlow: (request) => persistence.createFlow(request),
    acquire: async (request) => watchFlowLog(await persistence.acquire(request), listener),
    getBook: (uuid) => persistence.getBook(uuid),
    listBooks: (query) => persistence.listBooks(query),
    destroyBook: (uuid, options) => persistence.destroyBook(uuid, options),
    [Symbol.asyncDispose]: close,
  }
}

function watchFlowLog(log: FlowLog, listener: TransitionListener): FlowLog {
  return {
    flow: log.flow,
    write: async (transition) => {
      await log.write(transition)
      listener(transition)
    },
    close: () => log.close(),
    [Symbol.asyncDispose]: () => log[Symbol.asyncDispose](),
  }
}
