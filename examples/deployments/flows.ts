/** The flows of a shop: a summary of a tenant's orders, with a pool of connections that a conductor opens once. */
import { type Context, defineServices, input, linear, service, task } from 'jobboard'
import { Pool } from 'pg'

/** The tables of the shop. */
export const TABLES = `
  create table orders (tenant text, amount int);
  create table summaries (job uuid primary key, tenant text, text text)`

export const services = defineServices({
  database: service(
    async () =>
      new Pool({
        connectionString: `postgres://${process.env['SHOP_DATABASE'] ?? 'postgres@127.0.0.1:5432/shop'}`,
        max: 4,
      }),
    { health: (pool) => pool.query('select 1'), dispose: (pool) => pool.end() },
  ),
})

interface Services {
  readonly database: Pool
}

interface Store {
  readonly tenant: string
  readonly currency: string
}

const addUp = task('addUp', {
  requires: ['tenant'],
  provides: 'total',
  execute: async ({ tenant }: Pick<Store, 'tenant'>, { services: { database } }: Context<Services>) => {
    const { rows } = await database.query<{ total: number }>(
      'select coalesce(sum(amount), 0)::int as total from orders where tenant = $1',
      [tenant],
    )
    return rows[0]?.total ?? 0
  },
})

const write = task('write', {
  requires: ['tenant', 'currency', 'total'],
  execute: async (
    { tenant, currency, total }: Store & { readonly total: number },
    { services: { database }, job }: Context<Services>,
  ) => {
    // The job's uuid is the key: a task that is repeated writes once.
    await database.query('insert into summaries values ($1, $2, $3) on conflict do nothing', [
      job?.uuid,
      tenant,
      `${tenant} has sold for ${total} ${currency}`,
    ])
  },
})

/** One summary; each takes a token of the service that sends letters, and a slot of its tenant. */
export const summary = linear(
  { name: 'summary', posting: { limits: ({ tenant }: Store) => ['letters', `tenant/${tenant}`] } },
  input<Store>(),
  addUp,
  write,
)
