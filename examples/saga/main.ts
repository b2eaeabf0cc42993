/**
 * Trips across two databases: one succeeds, two are reverted, and one loses its owner halfway.
 *
 * Needs a Postgres at `SAGA_POSTGRES` in which it may create two databases, such as
 * `postgres://postgres@127.0.0.1:5432/postgres`.
 */
import { workbench } from 'jobboard/testing'
import { Pool } from 'pg'
import { PLACES, trip } from './trip.ts'

const { SAGA_POSTGRES = 'postgres://postgres@127.0.0.1:5432/postgres' } = process.env

async function makeDatabase(name: string): Promise<Pool> {
  const server = new Pool({ connectionString: SAGA_POSTGRES, max: 1 })
  await server.query(`drop database if exists ${name}`)
  await server.query(`create database ${name}`)
  await server.end()
  const database = new Pool({ connectionString: SAGA_POSTGRES.replace(/\/\w+$/, `/${name}`), max: 2 })
  await database.query(PLACES)
  return database
}

const [flights, hotels] = await Promise.all([makeDatabase('saga_flights'), makeDatabase('saga_hotels')])
const services = { flights, hotels }

/** Returns the bookings of a database. */
async function booked(): Promise<string> {
  const names = async (database: Pool) => {
    const { rows } = await database.query<{ who: string }>('select who from place where job is not null order by who')
    return rows.map(({ who }) => who).join(' and ') || 'nobody'
  }
  return `flights: ${await names(flights)}; hotels: ${await names(hotels)}`
}

{
  await using bench = await workbench({ flows: [trip], services })
  await bench.board.post(trip, { who: 'Ada', money: 900 })
  await bench.board.post(trip, { who: 'Bob', money: 20 })
  for (const { settled, failure } of await bench.drain()) console.log(settled, failure?.message ?? '')
  console.log(await booked())

  await bench.board.post(trip, { who: 'Grace', money: 700 })
  const job = await bench.crash({ after: 'room' })
  console.log(`the owner died, ${await booked()}`)
  await bench.drain()
  console.log(job.state, await booked())

  await bench.board.post(trip, { who: 'Joan', money: 800 })
  for (const { settled, failure } of await bench.drain()) console.log(settled, failure?.message)
  console.log(await booked())
}
await Promise.all([flights.end(), hotels.end()])
