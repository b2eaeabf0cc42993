/** Exports of the conductor for other folders of this project, not for users. */

export { isOfOtherBoard } from './runs/book-owner.ts'
