/** A flow that the tests beside it test. */
import { backOff, type Context, input, linear, task } from 'jobboard'

export interface Mailer {
  /** Sends a mail, once for each id. */
  send(to: string, options: { id: string }): Promise<void>
}

const choose = task('choose', {
  requires: ['list'],
  provides: 'readers',
  execute: ({ list }: { list: string[] }) => list.filter((reader) => reader.includes('@')),
})

export const send = task('send', {
  requires: ['readers', 'issue'],
  execute: async (
    { readers, issue }: { readers: string[]; issue: number },
    { services, progress, signal }: Context<{ mailer: Mailer }>,
  ) => {
    for (const [index, reader] of readers.entries()) {
      signal.throwIfAborted()
      await services.mailer.send(reader, { id: `${issue} to ${reader}` })
      progress((index + 1) / readers.length)
    }
    return readers.length
  },
})

const sending = linear(
  { name: 'sending', retry: backOff({ attempts: 4, first: '1m' }) },
  input<{ readers: string[]; issue: number }>(),
  send,
)

export const newsletter = linear('newsletter', input<{ list: string[]; issue: number }>(), choose, sending)
