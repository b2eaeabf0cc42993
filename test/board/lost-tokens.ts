/** What becomes of a call that takes a token, and whose answer is lost. */
import type { JobBoard } from '../../src/board/index.ts'

/**
 * Takes the last token of a key while the answers of the server are lost.
 *
 * @param setup.loseAnswers makes the answers to `board` get lost from then on
 * @returns the call, which resolves only if it takes its token once: the next token comes back in half an hour
 */
export async function takeUnheard(setup: {
  readonly board: JobBoard
  readonly other: JobBoard
  loseAnswers(): void
}): Promise<{ readonly taking: Promise<void> }> {
  const { board, other } = setup
  await other.limits.set('api', { rate: { limit: 2, per: '1h', burst: 2 } })
  // From then on the board knows the limit, and a call is one request.
  await board.limits.take('api')
  setup.loseAnswers()
  const taking = board.limits.take('api')
  taking.catch(() => undefined)
  while (!(await other.limits.show('api')).keys?.[0]?.nextStart);
  return { taking }
}
