/** Calls users' functions so that their errors affect neither the caller nor other handlers. */

/**
 * Calls a handler.
 *
 * @param onFault receives the error that the handler threw, or the reason of its rejected promise
 */
export function invokeHandler(handler: () => unknown, onFault: (error: unknown) => void): void {
  try {
    const answer = handler()
    // Handlers are not awaited; but an async function fails later, and an unhandled rejection would end the process.
    if (answer instanceof Promise) answer.catch(onFault)
  } catch (error) {
    onFault(error)
  }
}
