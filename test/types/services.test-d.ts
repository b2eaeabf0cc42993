/** What the compiler must accept and refuse of `ctx.services`. Checked by `tsc --noEmit`; nothing here is ever run. */
import {
  type AnyFlow,
  type Context,
  defineServices,
  type Flow,
  graph,
  input,
  linear,
  openBoard,
  type RetryContext,
  type RevertContext,
  retry,
  runConductor,
  runFlow,
  service,
  startConductor,
  task,
  unordered,
} from '../../src/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
declare function same<A, B>(answer: Same<A, B>): void

interface Database {
  find(id: string): Promise<string>
}
interface Mailer {
  send(text: string): void
}
declare const db: Database
declare const mailer: Mailer

const find = task('find', {
  requires: ['id'],
  provides: 'text',
  execute: ({ id }: { id: string }, { services }: Context<{ db: Database }>) => services.db.find(id),
})
const send = task('send', {
  requires: ['text'],
  execute: ({ text }: { text: string }, ctx: Context<{ mailer: Mailer }>) => ctx.services.mailer.send(text),
})
const pure = task('pure', {
  execute: (_args, ctx) => {
    // @ts-expect-error unknown, as nobody said what it is
    return ctx.services.db
  },
})
const undo = task('undo', {
  execute: () => 3,
  revert: (_args: object, { result, services }: RevertContext<number, { db: Database }>) =>
    services.db.find(`${result}`),
})
const again = retry('again', {
  execute: (_args: object, { services }: RetryContext<string, { db: Database }>) => services.db.find('again'),
  onFailure: () => 'RETRY',
})

// A flow needs what all of its parts need, however deep they lie.
const one = linear('one', input<{ id: string }>(), find, pure)
const both = linear('both', input<{ id: string }>(), find, send)
const deep = unordered('deep', input<{ id: string }>(), graph('inner', input<{ id: string }>(), send, find), pure)
const none = linear('none', input(), pure)
const reverting = linear('reverting', input(), undo)
const retried = linear({ name: 'retried', retry: again }, input(), pure)
same<typeof one, Flow<{ id: string }, { text: string }, { db: Database }>>(true)
same<typeof none, Flow<{ [K in never]: never }, { [K in never]: never }, unknown>>(true)

await runFlow(none, {})
await runFlow(none, {}, { concurrency: 1 })
await runFlow(one, { id: 'x' }, { services: { db } })
await runFlow(both, { id: 'x' }, { services: { db, mailer } })
await runFlow(deep, { id: 'x' }, { services: { db, mailer } })
await runFlow(reverting, {}, { services: { db } })
await runFlow(retried, {}, { services: { db } })
// @ts-expect-error nobody gives the database
await runFlow(one, { id: 'x' })
// @ts-expect-error nobody gives the database
await runFlow(one, { id: 'x' }, { concurrency: 1 })
// @ts-expect-error the mailer is missing
await runFlow(deep, { id: 'x' }, { services: { db } })
// @ts-expect-error no database
await runFlow(reverting, {}, { services: { db: 3 } })
// @ts-expect-error no database
await runFlow(retried, {}, { services: {} })

// Who posts gives nothing.
const board = await openBoard('memory:')
await board.post(both, { id: 'x' })

const places = { board, persistence: 'memory:' }
await startConductor({ ...places, flows: [one, both], services: { db, mailer } })
await startConductor({ ...places, flows: [one, both], services: async () => ({ db, mailer }) })
await startConductor({ ...places, flows: [none] })
await runConductor({ ...places, flows: [one], services: () => ({ db }) })
// @ts-expect-error the mailer is missing
await startConductor({ ...places, flows: [one, both], services: { db } })
// @ts-expect-error the mailer is missing
await startConductor({ ...places, flows: [one, both], services: async () => ({ db }) })
// @ts-expect-error nobody gives the database
await startConductor({ ...places, flows: [none, one] })
// @ts-expect-error nobody gives the database
await runConductor({ ...places, flows: [one] })

// What the compiler does not know is for run time.
declare const flows: readonly AnyFlow[]
await startConductor({ ...places, flows })
await startConductor({ ...places, flows, services: { anything: true } })

// Services with scopes: each needs what others make.
const defined = defineServices({
  db: service((): Database => db, { health: (made) => made.find('1') }),
  mailer: service(
    ({ db }: { db: Database }, { job }) => ({ send: (text: string) => void db.find(`${job?.name} ${text}`) }),
    {
      scope: 'job',
    },
  ),
})
await startConductor({ ...places, flows: [one, both], services: defined })
await runFlow(both, { id: 'x' }, { services: defined })
const onlyMailer = defineServices({ mailer: service((): Mailer => mailer) })
// @ts-expect-error the database is missing
await startConductor({ ...places, flows: [one, both], services: onlyMailer })
// @ts-expect-error the mailer needs a database, which nobody makes
defineServices({ mailer: service(({ db }: { db: Database }) => db) })
