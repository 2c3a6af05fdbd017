"""A problem of one's own in a folder: a project file, data, a cost, and the fitted model.

Data flow: ``project_file`` reads ``costscape.toml``; ``table_settings``, ``task_choice`` and
``method_choice`` turn its parts into a table, a task and a method; ``model_files`` keeps the
fitted model and the table's memory; ``new_rows`` reads rows added since; ``answers`` joins these
parts into what the commands print. ``first_answer`` needs one CSV file and no project.

The cost file of a project is the user's code. It is executed when a command makes the task.
"""
