/** Calling what users gave: whatever it does, it harms neither the caller nor the others who are called. */

/** @param onFault told of what the handler threw, or of why the promise that it returned was rejected */
export function invokeHandler(handler: () => unknown, onFault: (error: unknown) => void): void {
  try {
    const answer = handler()
    // Handlers are not waited for; but an async function fails only later, and a rejection that nobody looks at ends the
    // process.
    if (answer instanceof Promise) answer.catch(onFault)
  } catch (error) {
    onFault(error)
  }
}
