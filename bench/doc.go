// Package bench measures Weir: beside a textbook consumer that computes the same features, beside Feast, DuckDB and
// pandas, and while one thing grows, hangs or is filled. Its README says what each benchmark reports.
package bench
