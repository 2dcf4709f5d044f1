import { integer, number } from "../format";
import type { Cell } from "../report";

interface Props {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  /** Rows that the diagnosis is about. */
  readonly marked?: ReadonlySet<number>;
}

/** Numbers that are clearer in rows than in a chart. */
export function DataTable({ title, columns, rows, marked }: Props) {
  const isNumber = columns.map((_, i) => rows.every((row) => row[i] === null || isNumeric(row[i] ?? null)));
  return (
    <div class="data-table" tabIndex={0} role="region" aria-label={title}>
      <table>
        <caption>{title}</caption>
        <thead>
          <tr>
            {columns.map((column, i) => (
              <th key={i} scope="col" class={isNumber[i] ? "right" : ""}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i} class={marked?.has(i) ? "marked" : ""}>
              {row.map((cell, j) => (
                <td key={j} class={isNumber[j] ? "right" : ""}>
                  {written(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function isNumeric(cell: Cell): boolean {
  return typeof cell === "number" || cell === "NaN" || cell === "Infinity" || cell === "-Infinity";
}

function written(cell: Cell): string {
  if (cell === null) return "";
  if (Array.isArray(cell)) return cell.map(written).join(", ");
  if (typeof cell === "number") return Number.isInteger(cell) ? integer(cell) : number(cell);
  return cell === "Infinity" || cell === "-Infinity" ? number(cell) : String(cell);
}
