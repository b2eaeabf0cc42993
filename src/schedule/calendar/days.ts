/** Days of the calendar, numbered from 1970-01-01, and what rules ask of them. */

export const DAY_MS = 86_400_000

/** A day of the calendar, with the numbers that rules need. */
export interface Day {
  /** The number of days since 1970-01-01. */
  readonly index: number
  readonly year: number
  /** 1 to 12. */
  readonly month: number
  readonly date: number
  readonly monthLength: number
  /** 1 to 366. */
  readonly ordinal: number
  readonly yearLength: number
  /** 0 for Sunday. */
  readonly weekday: number
}

/** Returns a day by integer arithmetic: rules look at tens of thousands of days, for which `Date` takes ten times as long. */
export function toDay(index: number): Day {
  // Eras of 400 years, and years that begin in March, so that the leap day is the last one.
  const days = index + 719_468
  const era = Math.floor(days / 146_097)
  const dayOfEra = days - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const fromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 1 : 0
  return {
    index,
    year,
    month,
    date: dayOfYear - Math.floor((153 * fromMarch + 2) / 5) + 1,
    monthLength: month === 2 ? 28 + leap : 30 + ((month + (month > 7 ? 1 : 0)) % 2),
    ordinal: month <= 2 ? dayOfYear - 305 : dayOfYear + 60 + leap,
    yearLength: 365 + leap,
    weekday: (((index + 4) % 7) + 7) % 7,
  }
}

/** Returns the first day of the week of a day. @param start the weekday with which weeks start */
export function weekOf({ index, weekday }: Pick<Day, 'index' | 'weekday'>, start: number): number {
  return index - ((weekday - start + 7) % 7)
}

/**
 * Returns the number of the week of a day, from 1, and from the last week of its year, from -1: most days of a week are in its year
 * (RFC 5545, as ISO 8601).
 */
export function weekNumbers(day: Day, start: number): readonly [number, number] {
  const middle = toDay(weekOf(day, start) + 3)
  const number = Math.ceil(middle.ordinal / 7)
  // The 28th of December is in the last week of its year.
  const last = toDay(weekOf(toDay(middle.index - middle.ordinal + middle.yearLength - 3), start) + 3)
  return [number, number - Math.ceil(last.ordinal / 7) - 1]
}
