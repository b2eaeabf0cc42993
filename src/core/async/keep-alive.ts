/** Keeping the process up while something is awaited that has no socket of its own. */
import { MAX_TIMER_MS } from '../time.ts'

/**
 * Until it is disposed, Node does not end the process for want of something to do.
 *
 * A board in memory holds nothing open. Whoever awaited it in vain would not hang but be gone: Node ends a process whose
 * `await` nothing can end, with exit code 13 and not a word from us.
 *
 * @param held what is awaited, where others hold it weakly: it must not be collected while somebody waits for it
 */
export function keepAlive(held?: object): Disposable {
  const timer = setInterval(() => held, MAX_TIMER_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
