/**
 * A trip: a seat in one database, a room in another, and their reverts. No transaction
 * spans both databases; the flow does.
 *
 * Each booking has the job's uuid. So a task that runs twice books once, and a revert removes only its own booking, also
 * if it is not known whether the task had booked.
 */
import { type Context, input, linear, NonRetryable, type RevertContext, task } from 'jobboard'
import type { Pool } from 'pg'

export interface Services {
  readonly flights: Pool
  readonly hotels: Pool
}

type Kind = 'seat' | 'room'

/** Each database has two places. */
export const PLACES = `
  create table place (number int primary key, job uuid unique, who text);
  insert into place (number) values (1), (2)`

async function book(database: Pool, { who, job, kind }: { who: string; job: string; kind: Kind }): Promise<void> {
  // One statement, so it is atomic: it returns the place that this job has booked before, or else a free one.
  const { rowCount } = await database.query(
    `with own as (select number from place where job = $1),
          free as (select number from place where job is null and not exists (select from own)
                   order by number limit 1 for update skip locked)
     update place set job = $1, who = $2 where number in (select number from own union select number from free)`,
    [job, who],
  )
  if (rowCount === 0) throw new NonRetryable(`no ${kind} left for ${who}`)
  console.log(`${kind} for ${who}`)
}

async function giveBack(database: Pool, { job, kind }: { job: string; kind: Kind }): Promise<void> {
  const { rows } = await database.query<{ who: string }>(
    `with own as (select number, who from place where job = $1 for update)
     update place set job = null, who = null from own where place.number = own.number returning own.who`,
    [job],
  )
  for (const { who } of rows) console.log(`${kind} of ${who} given back`)
}

/** A booking in one of the databases. */
function booking(kind: Kind, database: keyof Services) {
  const jobOf = ({ job }: Context<Services>) => job?.uuid ?? ''
  return task(kind, {
    requires: ['who'],
    execute: ({ who }: { who: string }, ctx: Context<Services>) =>
      book(ctx.services[database], { who, kind, job: jobOf(ctx) }),
    revert: (_args, ctx: RevertContext<void, Services>) => giveBack(ctx.services[database], { kind, job: jobOf(ctx) }),
  })
}

const pay = task('pay', {
  requires: ['who', 'money'],
  execute: ({ who, money }: { who: string; money: number }) => {
    if (money < 500) throw new NonRetryable(`${who} has not enough money`)
    console.log(`${who} paid`)
  },
})

export const trip = linear(
  'trip',
  input<{ who: string; money: number }>(),
  booking('seat', 'flights'),
  booking('room', 'hotels'),
  pay,
)
